/* What commands print: which process prints what would be the same on all ranks, whether standard output
 * could be written, and the one line of a failure, "gdn: <text>" on standard error. */
#ifndef GDN_PRINTING_H
#define GDN_PRINTING_H

#include <stdbool.h>
#include <stdio.h>

/* A command that uses MPI says, once it knows its rank, whether this process prints for all (rank 0:
 * true). */
void commands_set_printing(bool prints);

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
 * commands_set_printing, the launcher's environment (Open MPI, PMIx, Slurm) tells the rank. */
bool gdn_print_failure_here(void);

/* Prints the recorded failure, "gdn: <text>" on standard error, where `status` is not GDN_OK and this
 * process prints; once, whoever calls first. main calls it last of all. mpirun ends all ranks as soon as one
 * has left with a failure, so a command that uses MPI calls it before MPI_Finalize already, which no rank
 * leaves before all have come. Not collective. */
void commands_report(int status);

#endif
