/* Runs a model that Hone compiled: fills every input with a ramp, runs it a few times, and prints
 * the time of the fastest run and the largest value of each output. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model.h" /* generated beside the library */

enum { FLOAT = 1, MAX_ARRAYS = 64, RUNS = 10 };

typedef int info_function(const hone_model*, int, int*, int*, const int64_t**);

/* A zeroed array for one input or output, aligned so that the model uses it in place; its number of
 * elements goes to *count. Null if it is not of floats, or without memory. */
static float* make_array(const hone_model* model, info_function* info, int i, int64_t* count) {
  int dtype, rank;
  const int64_t* shape;
  float* array;
  size_t bytes;
  if (info(model, i, &dtype, &rank, &shape) != 0 || dtype != FLOAT) return NULL;
  *count = 1;
  for (int d = 0; d < rank; ++d) *count *= shape[d];
  bytes = ((size_t)*count * sizeof(float) + 63) / 64 * 64;
  array = aligned_alloc(64, bytes > 0 ? bytes : 64);
  if (array != NULL) memset(array, 0, bytes);
  return array;
}

static double seconds(void) {
  struct timespec now;
  timespec_get(&now, TIME_UTC);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int run_timed(hone_model* model, const void* const* inputs, void* const* outputs) {
  double best = 1e9;
  for (int r = 0; r < RUNS; ++r) {
    const double start = seconds();
    if (hone_model_run(model, inputs, outputs) != 0) {
      fprintf(stderr, "run failed: %s\n", hone_model_last_error(model));
      return 1;
    }
    if (seconds() - start < best) best = seconds() - start;
  }
  printf("fastest of %d runs: %.3f ms\n", RUNS, best * 1e3);
  return 0;
}

int main(int argc, char** argv) {
  const int threads = argc > 1 ? atoi(argv[1]) : 0; /* 0: all cores */
  hone_model* model = NULL;
  float* inputs[MAX_ARRAYS] = {NULL};
  float* outputs[MAX_ARRAYS] = {NULL};
  int64_t sizes[MAX_ARRAYS] = {0};
  int failed = 1;
  if (hone_model_create(&model, threads) != 0) {
    fprintf(stderr, "cannot start the model: %s\n", hone_model_last_error(NULL));
    return 1;
  }
  const int num_inputs = hone_model_num_inputs(model);
  const int num_outputs = hone_model_num_outputs(model);
  if (num_inputs > MAX_ARRAYS || num_outputs > MAX_ARRAYS) goto unfit;
  for (int i = 0; i < num_inputs; ++i) {
    int64_t count = 0;
    inputs[i] = make_array(model, hone_model_input_info, i, &count);
    if (inputs[i] == NULL) goto unfit;
    for (int64_t j = 0; j < count; ++j) inputs[i][j] = (float)(j % 17) / 17.0f;
    printf("input %s: %lld values\n", hone_model_input_name(model, i), (long long)count);
  }
  for (int i = 0; i < num_outputs; ++i) {
    outputs[i] = make_array(model, hone_model_output_info, i, &sizes[i]);
    if (outputs[i] == NULL) goto unfit;
  }
  failed = run_timed(model, (const void* const*)inputs, (void* const*)outputs);
  for (int i = 0; i < num_outputs && !failed; ++i) {
    int64_t largest = 0;
    for (int64_t j = 1; j < sizes[i]; ++j)
      if (outputs[i][j] > outputs[i][largest]) largest = j;
    printf("output %s: largest value %g at %lld of %lld\n", hone_model_output_name(model, i),
           sizes[i] > 0 ? (double)outputs[i][largest] : 0.0, (long long)largest,
           (long long)sizes[i]);
  }
  goto done;
unfit:
  fprintf(stderr, "the example needs memory and at most %d inputs and outputs of floats\n",
          MAX_ARRAYS);
done:
  for (int i = 0; i < MAX_ARRAYS; ++i) {
    free(inputs[i]);
    free(outputs[i]);
  }
  hone_model_destroy(model);
  return failed;
}
