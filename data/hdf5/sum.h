/* The checksum of a dataset, which does not depend on who computes it: each element gives a number that is a
 * function of its value's bits and its place, and the checksum is the sum of these modulo 2⁶⁴. Parts can
 * therefore be summed by different ranks, in any order and however they are cut, and added up exactly.
 *
 * With i the index of the element in row-major order and b its stored bits as a little-endian unsigned
 * number, the element's number is mix(b + i · 0x9e3779b97f4a7c15), where mix is the finalizer of SplitMix64
 * (Steele, Lea and Flood 2014; all arithmetic modulo 2⁶⁴):
 *
 *     z = (z ^ z >> 30) · 0xbf58476d1ce4e5b9
 *     z = (z ^ z >> 27) · 0x94d049bb133111eb
 *     z ^ z >> 31
 *
 * The multiplier of i is 2⁶⁴/φ, so that 32-bit values at places up to 2³⁰ apart never meet in one z; mix is a
 * permutation, so that one changed element always changes the sum, and several do but with probability
 * 2⁻⁶⁴. */
#ifndef GDN_HDF5_SUM_H
#define GDN_HDF5_SUM_H

#include <stddef.h>
#include <stdint.h>

/* The sum of `count` consecutive elements of `element` bytes each (1, 2, 4 or 8) at any address, the first of
 * which has index `index`, and each other one `step` more than the one before. */
uint64_t sum_elements(const void *elements, size_t element, long count, uint64_t index, uint64_t step);

#endif
