/* The program's subcommands, one NAME.c each. Their failures are printed by one rank, once
 * (train/records/printing.h). */
#ifndef GDN_COMMANDS_H
#define GDN_COMMANDS_H

#include "train/records/printing.h"

/* The program: finds the subcommand, and sees that its failure is printed; returns the exit status. A program
 * of its own may register rows of tables before. */
int gdn_main(int argc, char **argv);

/* Each takes the words after the subcommand's name (argv[0] is "gdn NAME", for usage messages) and returns
 * the program's exit status (kernels/base/status.h), with the words of a failure recorded by gdn_fail. One
 * that uses MPI returns the same status on every rank, after MPI_Finalize. */
int cmd_train(int argc, char **argv);
int cmd_eval(int argc, char **argv);
int cmd_prune(int argc, char **argv);
int cmd_rules(int argc, char **argv);
int cmd_generate(int argc, char **argv);
int cmd_data(int argc, char **argv);
int cmd_checkpoint(int argc, char **argv);
int cmd_deltas(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_plan(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_bench(int argc, char **argv);

#endif
