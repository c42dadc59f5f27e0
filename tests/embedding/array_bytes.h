/* The sizes of a model's arrays. */
#include <stddef.h>
#include <stdint.h>

static size_t width(int dtype) {
  if (dtype >= 17 && dtype <= 26) return 1; /* types of 8 bits and fewer */
  switch (dtype) {                          /* TensorProto.DataType */
    case 2:
    case 3:
    case 9: return 1;
    case 4:
    case 5:
    case 10:
    case 16: return 2;
    case 7:
    case 11:
    case 13: return 8;
    default: return 4;
  }
}

static size_t bytes_of(int dtype, int rank, const int64_t* shape) {
  size_t bytes = width(dtype);
  for (int d = 0; d < rank; ++d) bytes *= (size_t)shape[d];
  return bytes;
}
