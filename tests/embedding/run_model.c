/* A program with a model inside: run_model INPUT OUTPUT THREADS [own]. Reads the inputs, one behind
 * the other, from a file and writes the outputs to one. Fails if a run allocates. With "own" the
 * model has no threads and runs by a function of this program. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "array_bytes.h"
#include "model.h"

enum { MAX_ARRAYS = 16, MAX_TASKS = 64, RUNS = 50 };

/* Every way to memory, counted; they take the place of libc's for the model, too. */
static atomic_long allocations;
extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);
void* malloc(size_t size) {
  ++allocations;
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  ++allocations;
  return __libc_calloc(count, size);
}
void* realloc(void* old, size_t size) {
  ++allocations;
  return __libc_realloc(old, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  ++allocations;
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** out, size_t alignment, size_t size) {
  ++allocations;
  *out = __libc_memalign(alignment, size);
  return *out == NULL ? ENOMEM : 0;
}
void* mmap(void* address, size_t size, int protection, int flags, int file, off_t offset) {
  ++allocations;
  return (void*)syscall(SYS_mmap, address, size, protection, flags, file, offset);
}

typedef int info_function(const hone_model*, int, int*, int*, const int64_t**);

static void* make_array(const hone_model* model, info_function* info, int i, size_t* bytes) {
  int dtype = 0, rank = 0;
  const int64_t* shape = NULL;
  if (info(model, i, &dtype, &rank, &shape) != 0) return NULL;
  *bytes = bytes_of(dtype, rank, shape);
  return calloc(*bytes + 1, 1);
}

struct job {
  hone_model_task task;
  void* context;
  int i;
};
static struct job jobs[MAX_TASKS];
static void* run_job(void* argument) {
  const struct job* job = argument;
  job->task(job->context, job->i);
  return NULL;
}

/* Threads would be allocations: the first call of a run takes them, the others go backwards. */
static int with_threads;
static int calls;
static void parallel_for(void* pool, int count, hone_model_task task, void* context) {
  pthread_t threads[MAX_TASKS];
  if (pool != &calls || count > MAX_TASKS) abort();
  ++calls;
  for (int i = count - 1; i >= 0; --i) {
    jobs[i] = (struct job){task, context, i};
    if (!with_threads) run_job(&jobs[i]);
    if (with_threads && pthread_create(&threads[i], NULL, run_job, &jobs[i]) != 0) abort();
  }
  for (int i = 0; with_threads && i < count; ++i) pthread_join(threads[i], NULL);
}

static int fail(const char* what, const char* why) {
  fprintf(stderr, "%s: %s\n", what, why);
  return 1;
}

int main(int argc, char** argv) {
  hone_model* model = NULL;
  hone_model_options options = {0};
  const void* inputs[MAX_ARRAYS];
  void* outputs[MAX_ARRAYS];
  size_t input_bytes[MAX_ARRAYS], output_bytes[MAX_ARRAYS];
  if (argc < 4) return fail("usage", "run_model INPUT OUTPUT THREADS [own]");
  FILE* from = fopen(argv[1], "rb");
  FILE* to = fopen(argv[2], "wb");
  if (from == NULL || to == NULL) return fail("cannot open", argv[from == NULL ? 1 : 2]);
  options.size = sizeof options;
  options.num_threads = atoi(argv[3]);
  if (argc > 4) {
    options.parallel_for = parallel_for;
    options.pool = &calls;
  }
  if (hone_model_create_with(&model, &options) != 0) return fail("create", hone_model_last_error(NULL));
  const int num_inputs = hone_model_num_inputs(model), num_outputs = hone_model_num_outputs(model);
  if (num_inputs > MAX_ARRAYS || num_outputs > MAX_ARRAYS) return fail("model", "too many arrays");
  for (int i = 0; i < num_inputs; ++i) {
    void* array = make_array(model, hone_model_input_info, i, &input_bytes[i]);
    if (array == NULL || fread(array, 1, input_bytes[i], from) != input_bytes[i])
      return fail("input", hone_model_input_name(model, i));
    inputs[i] = array;
  }
  for (int i = 0; i < num_outputs; ++i) {
    outputs[i] = make_array(model, hone_model_output_info, i, &output_bytes[i]);
    if (outputs[i] == NULL) return fail("output", hone_model_output_name(model, i));
  }
  with_threads = 1;
  if (hone_model_run(model, inputs, outputs) != 0) return fail("run", hone_model_last_error(model));
  with_threads = 0;
  const long before = allocations;
  if (before == 0) return fail("test", "no allocation was counted in create");
  for (int run = 0; run < RUNS; ++run)
    if (hone_model_run(model, inputs, outputs) != 0) return fail("run", hone_model_last_error(model));
  const long allocated = allocations - before;
  for (int i = 0; i < num_outputs; ++i) fwrite(outputs[i], 1, output_bytes[i], to);
  fclose(from);
  if (fclose(to) != 0) return fail("cannot write", argv[2]);
  printf("%ld allocations in %d runs, %d calls of the pool, %d threads\n", allocated, RUNS, calls,
         hone_model_num_threads(model));
  hone_model_destroy(model);
  return allocated == 0 ? 0 : 1;
}
