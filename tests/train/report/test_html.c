/* Text, numbers and figures of the page. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/base/status.h"
#include "tests/support/unit.h"
#include "train/report/figure.h"
#include "train/report/html.h"

static void shows(const char *text, const char *html) {
    char *out = NULL;
    size_t size;
    FILE *page = open_memstream(&out, &size);
    html_text(page, text);
    fclose(page);
    assert_string_equal(out, html);
    free(out);
}

#define REPLACED "\xef\xbf\xbd"

static void text_stays_text(void **state) {
    (void)state;
    shows("<script>alert('x') && \"y\"</script>",
          "&lt;script&gt;alert(&#39;x&#39;) &amp;&amp; &quot;y&quot;&lt;/script&gt;");
    shows("gr\xc3\xb6\xc3\x9f"
          "e \xe2\x82\xac \xf0\x9f\x98\x80",
          "gr\xc3\xb6\xc3\x9f"
          "e \xe2\x82\xac \xf0\x9f\x98\x80");
    shows("a\x01\x1b"
          "b\x7f",
          "a" REPLACED REPLACED "b" REPLACED);
    shows("\xff<\xc3", REPLACED "&lt;" REPLACED); /* cut off */
    shows("\xc0\xbc", REPLACED REPLACED);         /* an overlong '<' */
    shows("\xe2\x80\xae"
          "x",
          REPLACED REPLACED REPLACED "x");             /* right to left */
    shows("\xed\xa0\x80", REPLACED REPLACED REPLACED); /* half a surrogate */
}

static void numbers_for_people(void **state) {
    (void)state;
    char text[32];
    assert_string_equal(count_text(897264, text), "897 k");
    assert_string_equal(count_text(1234, text), "1234");
    assert_string_equal(count_text(7.16e9, text), "7.16 G");
    assert_string_equal(bytes_text(1536, text), "1.50 KiB");
    assert_string_equal(bytes_text(17, text), "17 B");
    assert_string_equal(seconds_text(0.0215, text), "21.5 ms");
    assert_string_equal(seconds_text(725, text), "12:05");
    assert_string_equal(percent_text(0.8765, text), "87.6%");
    assert_string_equal(number_text(2.123456, text), "2.123");
    assert_string_equal(number_text(0.00001, text), "1.000e-05");
    assert_string_equal(number_text(NAN, text), "\xe2\x80\x93");
    assert_string_equal(moment_text(1795314843.7, text), "2026-11-22 02:34:03");
    assert_string_equal(moment_text(1e300, text), "\xe2\x80\x93");
}

static void figures_come_without_names(void **state) {
    (void)state;
    char *out = NULL;
    size_t size;
    FILE *page = open_memstream(&out, &size);
    figure_embed("<?xml?><svg x=\"1\" viewBox=\"0 0 9 9\" y=\"2\">\n<title>t</title><defs><g "
                 "id='a'/></defs><g id=\"b\" "
                 "c='d'><title>$d0</title></g></svg>\n",
                 "a \"b\"", page);
    fclose(page);
    assert_string_equal(out, "<svg viewBox=\"0 0 9 9\" role=\"img\" aria-label=\"a &quot;b&quot;\">\n<g  "
                             "c='d'></g></svg>\n");
    free(out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_stays_text),
        cmocka_unit_test(numbers_for_people),
        cmocka_unit_test(figures_come_without_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
