/* The program's subcommands, one cmd_NAME.c each. Failures are printed here only,
 * once and by one rank: "gdn: <words>" on standard error. */
#ifndef GDN_COMMANDS_H
#define GDN_COMMANDS_H

#include <stdbool.h>
#include <stdio.h>

/* Each takes the words after the subcommand's name (argv[0] is "gdn NAME", for usage messages) and returns
 * the program's exit status (kernels/base/status.h), with the words of a failure recorded by gdn_fail. One
 * that uses MPI returns the same status on every rank, after MPI_Finalize. */
int cmd_train(int argc, char **argv);
int cmd_eval(int argc, char **argv);
int cmd_generate(int argc, char **argv);
int cmd_data(int argc, char **argv);
int cmd_checkpoint(int argc, char **argv);
int cmd_deltas(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_plan(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_bench(int argc, char **argv);

/* A command that uses MPI says, once it knows its rank, whether this process speaks for all (rank 0: true).
 */
void commands_set_speaker(bool speaks);

/* This process's rank as the launcher's environment tells it (Open MPI, PMIx, Slurm), −1 where none does. */
int commands_launched_rank(void);

/* Flushes standard output: output that was asked for and could not be written, as on a full disk, is a
 * failure (GDN_INTERNAL). main calls it behind every command that succeeded. */
int commands_finish_printing(void);

/* For a command whose standard output is no part of what it does: flushes `out`. Where that cannot be written
 * (a full disk, a pipe that nobody reads any more), says so on standard error; what is printed from then on
 * goes nowhere, so that this is said once and is no failure. */
void commands_flush_unneeded(FILE *out);

/* Whether this process prints messages that every rank would print alike (failures, --help). Before
 * commands_set_speaker, the launcher's environment (Open MPI, PMIx, Slurm) tells the rank. */
bool gdn_print_failure_here(void);

/* Prints the recorded failure, "gdn: <words>" on standard error, where `status` is not GDN_OK and this
 * process speaks; once, whoever calls first. main calls it last of all. mpirun ends all ranks as soon as one
 * has left with a failure, so a command that uses MPI calls it before MPI_Finalize already, which no rank
 * leaves before all have come. Not collective. */
void commands_report(int status);

#endif
