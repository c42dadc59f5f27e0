/* Runs a library for the machine that this program is compiled for: run_library LIBRARY INPUT OUTPUT.
 * Reads the inputs, one behind the other, from a file. Writes for each output its rank and extents,
 * as 64-bit integers, and then its bytes. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "array_bytes.h"

enum { MAX_ARRAYS = 32 };

typedef int info_function(const void*, int, int*, int*, const int64_t**);

static int fail(const char* what, const char* why) {
  fprintf(stderr, "%s: %s\n", what, why);
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 4) return fail("usage", "run_library LIBRARY INPUT OUTPUT");
  void* library = dlopen(argv[1], RTLD_NOW);
  if (library == NULL) return fail("load", dlerror());
  int (*create)(void**, int) = dlsym(library, "hone_model_create");
  int (*num_inputs)(const void*) = dlsym(library, "hone_model_num_inputs");
  int (*num_outputs)(const void*) = dlsym(library, "hone_model_num_outputs");
  info_function* input_info = dlsym(library, "hone_model_input_info");
  info_function* output_info = dlsym(library, "hone_model_output_info");
  int (*run)(void*, const void* const*, void* const*) = dlsym(library, "hone_model_run");
  int (*output_shape)(const void*, int, int*, const int64_t**) = dlsym(library, "hone_model_output_shape");
  const char* (*last_error)(const void*) = dlsym(library, "hone_model_last_error");
  void (*destroy)(void*) = dlsym(library, "hone_model_destroy");
  void* model = NULL;
  if (create(&model, 1) != 0) return fail("create", last_error(NULL));
  FILE* from = fopen(argv[2], "rb");
  FILE* to = fopen(argv[3], "wb");
  if (from == NULL || to == NULL) return fail("cannot open", argv[from == NULL ? 2 : 3]);
  const int inputs = num_inputs(model), outputs = num_outputs(model);
  void* arrays[2 * MAX_ARRAYS];
  int dtype = 0, rank = 0;
  const int64_t* shape = NULL;
  if (inputs > MAX_ARRAYS || outputs > MAX_ARRAYS) return fail("model", "too many arrays");
  for (int i = 0; i < inputs; ++i) {
    input_info(model, i, &dtype, &rank, &shape);
    const size_t bytes = bytes_of(dtype, rank, shape);
    arrays[i] = malloc(bytes + 1);
    if (fread(arrays[i], 1, bytes, from) != bytes) return fail("input", "the file is too short");
  }
  for (int i = 0; i < outputs; ++i) {
    output_info(model, i, &dtype, &rank, &shape);
    arrays[inputs + i] = malloc(bytes_of(dtype, rank, shape) + 1);
  }
  if (run(model, (const void* const*)arrays, arrays + inputs) != 0) return fail("run", last_error(model));
  for (int i = 0; i < outputs; ++i) {
    output_info(model, i, &dtype, &rank, &shape);
    output_shape(model, i, &rank, &shape);
    const int64_t dims = rank;
    fwrite(&dims, sizeof dims, 1, to);
    fwrite(shape, sizeof *shape, (size_t)rank, to);
    fwrite(arrays[inputs + i], 1, bytes_of(dtype, rank, shape), to);
  }
  destroy(model);
  return fclose(to) == 0 ? 0 : fail("cannot write", argv[3]);
}
