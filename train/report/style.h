/* How the page of gdn report looks: its style sheet and the colours that figures share with it. */
#ifndef GDN_REPORT_STYLE_H
#define GDN_REPORT_STYLE_H

/* Of curves, "#rrggbb": they can be told apart on white and on black. */
extern const char *const report_colour[8];

/* How bad an event is; figures give −1 − mark as a colour. */
enum report_mark { MARK_PLAIN, MARK_GOOD, MARK_ASKED, MARK_WARNING, MARK_BAD, MARKS };
extern const char *const report_mark_colour[MARKS];
extern const char *const report_mark_class[MARKS];

/* A colour of the sequential scale (viridis) for 0 <= t <= 1, and gnuplot's "defined (…)" of the same. */
void report_scale(double t, char colour[8]);
#define REPORT_PALETTE "defined (0 '#440154', 1 '#3b528b', 2 '#21918c', 3 '#5ec962', 4 '#fde725')"

extern const char report_style[];

/* The shapes of points that all figures refer to, once a page. */
extern const char report_shapes[];

#endif
