/* Rows that tests add to the tables of gdn, one file each; a function registers its row. None is part of gdn:
 * each proves that its table takes a row without another file being touched. */
#ifndef GDN_TEST_ROWS_H
#define GDN_TEST_ROWS_H

/* All of the functions below, before anything else of the program. */
void rows_register(void);

void rows_of_optimizers(void); /* optimizers.c */
void rows_of_mixers(void);     /* mixer_average.c */

#endif
