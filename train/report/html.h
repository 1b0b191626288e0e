/* Text and numbers in a page of HTML. */
#ifndef GDN_REPORT_HTML_H
#define GDN_REPORT_HTML_H

#include <stdio.h>

/* Writes any text so that a page shows it as it is, between tags and in quoted attributes alike: what has a
 * meaning in HTML is escaped, what is no printable UTF-8 becomes U+FFFD. */
void html_text(FILE *page, const char *text);

/* Numbers for people in `text` (32 bytes), which is returned: "–" where one is not finite. */
char *number_text(double x, char text[32]);            /* four digits: 0.001234, 12.35, 1235 */
char *count_text(double x, char text[32]);             /* 1234, 12.3 k, 4.56 M */
char *bytes_text(double x, char text[32]);             /* 12.3 MiB */
char *seconds_text(double x, char text[32]);           /* 1.2 ms, 3.45 s, 12:05 */
char *percent_text(double x, char text[32]);           /* of 0.123: 12.3% */
char *moment_text(double unix_seconds, char text[32]); /* 2026-11-22 14:03:05, UTC */

#endif
