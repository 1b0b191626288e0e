/* The commands of gdn data. Each takes the words after its name (argv[0] is "gdn data NAME") and returns a
 * status. */
#ifndef GDN_COMMAND_DATA_H
#define GDN_COMMAND_DATA_H

int data_write(int argc, char **argv);
int data_tokenizer(int argc, char **argv);
int data_show(int argc, char **argv);
int data_sample(int argc, char **argv);

#endif
