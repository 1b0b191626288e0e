#include "train/config/nearest.h"

#include <stddef.h>
#include <string.h>

enum { LONGEST = 63 };

static int min(int a, int b) {
    return a < b ? a : b;
}

int edit_distance(const char *a, const char *b) {
    int rows = (int)strnlen(a, LONGEST), columns = (int)strnlen(b, LONGEST);
    int d[LONGEST + 1]
         [LONGEST + 1]; /* d[i][j]: distance of the first i characters of a to the first j of b */
    for (int i = 0; i <= rows; i++) {
        for (int j = 0; j <= columns; j++) {
            if (i == 0 || j == 0) {
                d[i][j] = i + j;
                continue;
            }
            int replaced = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            d[i][j] = min(replaced, 1 + min(d[i - 1][j], d[i][j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = min(d[i][j], d[i - 2][j - 2] + 1);
        }
    }
    return d[rows][columns];
}

int edit_tolerance(const char *word) {
    return 1 + (int)strnlen(word, LONGEST) / 4;
}

const char *nearest_word(const char *word, const char *const *words) {
    const char *nearest = NULL;
    int best = edit_tolerance(word) + 1;
    for (; *words; words++) {
        size_t length = strlen(word);
        int distance = length >= 3 && !strncmp(word, *words, length) ? 1 : edit_distance(word, *words);
        /* A word of which every character must change is no likeness: "xy" is not "lr". */
        if (distance < best && distance < (int)length) best = distance, nearest = *words;
    }
    return nearest;
}
