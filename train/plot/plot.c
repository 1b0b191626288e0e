#include "train/plot/plot.h"

#include "data/output.h"
#include "kernels/base/status.h"
#include "kernels/base/write_whole.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

int plot_open(struct plot *plot, enum plot_format format, int width, int height) {
    *plot = (struct plot){0};
    plot->script = open_memstream(&plot->text, &plot->size);
    if (!plot->script) return gdn_fail(GDN_INTERNAL, "out of memory for a figure");
    /* noenhanced: without it, _ ^ { } @ & in texts would be formatting. */
    if (format == PLOT_SVG)
        fprintf(plot->script,
                "set terminal svg size %d,%d noenhanced font 'sans-serif,12' "
                "background rgb 'white'\n",
                width, height);
    else if (format == PLOT_INLINE)
        fprintf(plot->script, "set terminal svg size %d,%d dynamic noenhanced font 'sans-serif,13'\n", width,
                height);
    else
        fprintf(plot->script,
                "set terminal pngcairo size %d,%d noenhanced font 'Sans,10' background rgb 'white'\n", width,
                height);
    fprintf(plot->script, "set encoding utf8\n");
    return 0;
}

void plot_close(struct plot *plot) {
    if (plot->script) fclose(plot->script);
    free(plot->text);
    *plot = (struct plot){0};
}

/* Bytes of the printable character at `text`, 0 where there is none. */
static int character(const char *text) {
    unsigned char c = (unsigned char)*text;
    int length = c < 0x80                ? 1
                 : c >= 0xc2 && c < 0xe0 ? 2
                 : c >= 0xe0 && c < 0xf0 ? 3
                 : c >= 0xf0 && c < 0xf5 ? 4
                                         : 0;
    if (c < 0x20 || c == 0x7f) return 0;
    for (int i = 1; i < length; i++)
        if (((unsigned char)text[i] & 0xc0) != 0x80) return 0;
    return length;
}

/* Between single quotes gnuplot interprets nothing but '', a quote. */
void plot_quote(FILE *script, const char *text) {
    fputc('\'', script);
    while (*text) {
        int length = character(text);
        if (*text == '\'') fputc('\'', script);
        if (length)
            fwrite(text, 1, (size_t)length, script);
        else
            fputc('?', script);
        text += length ? length : 1;
    }
    fputc('\'', script);
}

/* The files of one gnuplot process; −1: not open. */
struct streams {
    int script, picture, errors;
};

static int start(const struct streams *s, pid_t *child) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t usual; /* this program ignores it, and gnuplot would not tell that its picture is cut */
    char *arguments[] = {"gnuplot", "--default-settings", "-", NULL}; /* nobody's ~/.gnuplot */
    int error = posix_spawn_file_actions_init(&actions);
    if (error) return error;
    sigemptyset(&usual);
    sigaddset(&usual, SIGXFSZ);
    if ((error = posix_spawnattr_init(&attributes))) {
        posix_spawn_file_actions_destroy(&actions);
        return error;
    }
    posix_spawnattr_setsigdefault(&attributes, &usual);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    error = posix_spawn_file_actions_adddup2(&actions, s->script, STDIN_FILENO);
    if (!error) error = posix_spawn_file_actions_adddup2(&actions, s->picture, STDOUT_FILENO);
    if (!error) error = posix_spawn_file_actions_adddup2(&actions, s->errors, STDERR_FILENO);
    if (!error) error = posix_spawnp(child, arguments[0], &actions, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* The line of gnuplot's words that says what is wrong: the last that is not empty. */
static void last_line(int errors, char *line, size_t size) {
    char text[4096];
    ssize_t n = pread(errors, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = 0;
    snprintf(line, size, "it says nothing");
    char *rest = text;
    for (char *next; (next = strsep(&rest, "\n"));) {
        next += strspn(next, " \t^");
        if (*next) snprintf(line, size, "%s", next);
    }
}

/* Whether the picture ends as one does: gnuplot does not look at what became of its writing. */
static bool whole(int picture) {
    char tail[16];
    struct stat about;
    if (fstat(picture, &about) || about.st_size < (off_t)sizeof tail) return false;
    if (pread(picture, tail, sizeof tail, about.st_size - (off_t)sizeof tail) != sizeof tail) return false;
    return memmem(tail, sizeof tail, "</svg>", 6) || memmem(tail, sizeof tail, "IEND", 4);
}

/* Runs gnuplot to its end. */
static int run(const struct streams *s, const char *path) {
    pid_t child;
    int error = start(s, &child), how;
    if (error == ENOENT)
        return gdn_fail(GDN_INPUT, "gnuplot is missing, which draws figures (Debian: package gnuplot-nox)");
    if (error) return gdn_fail(GDN_INPUT, "gnuplot cannot be started: %s", strerror(error));
    while (waitpid(child, &how, 0) < 0)
        if (errno != EINTR) return gdn_fail(GDN_INTERNAL, "gnuplot is lost: %s", strerror(errno));
    char text[512];
    last_line(s->errors, text, sizeof text);
    if (WIFSIGNALED(how) && WTERMSIG(how) == SIGXFSZ)
        return gdn_fail(
            GDN_INPUT, "%s: the picture is beyond the limit of a file's size; raise it with ulimit -f", path);
    if (WIFSIGNALED(how))
        return gdn_fail(GDN_INPUT, "%s: gnuplot was ended by signal %d: %s", path, WTERMSIG(how), text);
    if (WEXITSTATUS(how) == 127) return gdn_fail(GDN_INPUT, "gnuplot cannot be started: %s", text);
    if (WEXITSTATUS(how) == 0 && whole(s->picture)) return 0;
    return gdn_fail(GDN_INPUT, "%s: gnuplot could not draw it: %s", path, text);
}

/* Memory that is a file, so that nothing waits on a pipe. */
static int memory_file(int *file) {
    *file = memfd_create("gnuplot", MFD_CLOEXEC);
    return *file < 0 ? gdn_fail(GDN_INTERNAL, "no memory for gnuplot's input: %s", strerror(errno)) : 0;
}

static int write_script(int file, const struct plot *plot) {
    const int reason = write_whole(file, plot->text, plot->size);
    if (reason) return gdn_fail(GDN_INTERNAL, "gnuplot's input cannot be written: %s", strerror(reason));
    lseek(file, 0, SEEK_SET);
    return 0;
}

/* The picture as text. */
static int read_picture(int picture, char **text, size_t *size) {
    struct stat about;
    if (fstat(picture, &about)) return gdn_fail(GDN_INTERNAL, "a figure is lost: %s", strerror(errno));
    *size = (size_t)about.st_size;
    *text = malloc(*size + 1);
    if (!*text) return gdn_fail(GDN_INTERNAL, "out of memory for a figure");
    for (size_t done = 0; done < *size;) {
        ssize_t n = pread(picture, *text + done, *size - done, (off_t)done);
        if (n <= 0) return free(*text), gdn_fail(GDN_INTERNAL, "a figure is lost: %s", strerror(errno));
        done += (size_t)n;
    }
    (*text)[*size] = 0;
    return 0;
}

static int write_picture(int picture, const char *path) {
    struct output output;
    char block[1 << 16];
    int status = output_open(path, &output);
    for (off_t at = 0; !status;) {
        ssize_t n = pread(picture, block, sizeof block, at);
        if (n <= 0) break;
        status = output_write(&output, block, (size_t)n);
        at += n;
    }
    return output_finish(&output, status);
}

/* Runs gnuplot on the script; the picture is then in streams->picture. `name`: of the picture, in
 * messages. */
static int draw_with(struct plot *plot, struct streams *s, const char *name) {
    if (fflush(plot->script)) return gdn_fail(GDN_INTERNAL, "out of memory for a figure");
    TRY(memory_file(&s->script));
    TRY(memory_file(&s->picture)); /* written to disk here, where a full one is noticed */
    TRY(memory_file(&s->errors));
    TRY(write_script(s->script, plot));
    return run(s, name);
}

static void close_streams(const struct streams *streams) {
    if (streams->script >= 0) close(streams->script);
    if (streams->picture >= 0) close(streams->picture);
    if (streams->errors >= 0) close(streams->errors);
}

int plot_draw(struct plot *plot, const char *path) {
    struct streams streams = {-1, -1, -1};
    int status = draw_with(plot, &streams, path);
    if (!status) status = write_picture(streams.picture, path);
    close_streams(&streams);
    return status;
}

int plot_text(struct plot *plot, const char *name, char **text, size_t *size) {
    struct streams streams = {-1, -1, -1};
    int status = draw_with(plot, &streams, name);
    if (!status) status = read_picture(streams.picture, text, size);
    close_streams(&streams);
    return status;
}
