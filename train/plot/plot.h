/* Figures drawn by gnuplot: a script is written to memory, then one process draws it into one file. Text
 * comes into a script only through plot_quote. */
#ifndef GDN_PLOT_H
#define GDN_PLOT_H

#include <stdio.h>

enum plot_format {
    PLOT_SVG,
    PLOT_PNG,
    PLOT_INLINE /* an SVG for a page of HTML: without background, as wide as what it is in */
};

struct plot {
    FILE *script; /* what follows the terminal: gnuplot's commands */
    char *text;   /* the script's memory */
    size_t size;
};

/* Begins a figure of so many pixels. Whatever happens then, plot_close must follow. GDN_INTERNAL. */
int plot_open(struct plot *plot, enum plot_format format, int width, int height);

/* Draws it. The file is complete or not there; one that is there is replaced. GDN_INPUT where gnuplot is
 * missing, refuses the script (with its words), or the file cannot be written. */
int plot_draw(struct plot *plot, const char *path);

/* Draws it into memory instead: `text` is `size` bytes and a zero, owned by the caller (free). `name` is what
 * messages call the figure. Fails as plot_draw. */
int plot_text(struct plot *plot, const char *name, char **text, size_t *size);
void plot_close(struct plot *plot);

/* Writes the text as a string that gnuplot takes as it stands: nothing in it is run or formatted. What is not
 * printable UTF-8 becomes '?'. */
void plot_quote(FILE *script, const char *text);

#endif
