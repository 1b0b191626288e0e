/* Where a command writes, looked at before its work. */
#ifndef GDN_OUTPUTS_H
#define GDN_OUTPUTS_H

/* output_verify of a file of a command that reads `given`: a run directory, or what else checkpoint_resolve
 * takes. GDN_INPUT too where it would replace that checkpoint or what a run keeps (interfaces.md). */
int outputs_verify(const char *option, const char *path, const char *given);

#endif
