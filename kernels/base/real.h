/* The number type of weights, activations and gradients: float, or double in a GDN_DOUBLE build. */
#ifndef GDN_REAL_H
#define GDN_REAL_H

#ifdef GDN_DOUBLE
typedef double real;
#define GDN_REAL_NAME "float64"
#else
typedef float real;
#define GDN_REAL_NAME "float32"
#endif

#endif
