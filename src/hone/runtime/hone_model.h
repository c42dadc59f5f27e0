/* runtime/hone_model.h - the C interface of an artifact. A generated header is this file
 * with the model's inputs and outputs in a comment and, with --prefix NAME, NAME for hone_model and
 * NAME_abi_version for hone_abi_version. The interface changes only with HONE_ABI_VERSION. */
#ifndef HONE_MODEL_H_
#define HONE_MODEL_H_

#include <stddef.h>
#include <stdint.h>

#define HONE_ABI_VERSION 6
#define HONE_TIME_IS_OVER 2 /* of a run; see time_limit_ms */
/* Of a run whose inputs ask for more turns of a loop than the model was compiled for, or for a
 * branch that was left out. Since version 6. */
#define HONE_INPUTS_ARE_REFUSED 3

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hone_model hone_model;

/* All functions that return an int return 0 on success. An object may be used from one thread at a
 * time; several objects may run at once and share the weights. num_threads: 0 = all CPUs that this
 * process may use, by its affinity and the CPU quota of its cgroup; never are there more than
 * those. After a failure *out is null and hone_model_last_error(NULL) says why. */
int hone_model_create(hone_model** out, int num_threads);

/* Runs task(context, i) once for every i from 0 to count - 1, on any threads, at the same time or
 * not, and returns when all are done. `pool` is that of the options. */
typedef void (*hone_model_task)(void* context, int i);
typedef void (*hone_model_parallel_for)(void* pool, int count, hone_model_task task, void* context);

typedef struct hone_model_options {
  size_t size;     /* sizeof(hone_model_options); all that is not set must be 0 */
  int num_threads; /* as above; with parallel_for: the most tasks of a call, of any number */
  int64_t spin_ns; /* an idle thread spins that long, then sleeps; 0 = a default; < 0: it sleeps */
  /* If not null, the model starts no threads: this function, called within hone_model_run by the
   * thread that calls that, runs its work. The results are the same to the bit. */
  hone_model_parallel_for parallel_for;
  void* pool;
  /* For a model that was compiled for a GPU: which one of its kind, counted from 1 in the order of
   * CUDA or, GPUs first, of OpenCL; 0 = the first that its code runs on. Since version 3. */
  int device;
  /* For a model that was compiled for a GPU: the most milliseconds until a run has ended, from the
   * moment at which its inputs are on the device; 0 = any number. A run that takes longer is given
   * up and returns HONE_TIME_IS_OVER, with an error that names the step, as far as it is known. The
   * device is then lost to the process, since the kernel may run until the process ends: later
   * calls fail in the same way, at once. A run in a caller's stream is found to be late by the next
   * call, and its arrays are still in use. Since version 4. */
  int time_limit_ms;
} hone_model_options;

int hone_model_create_with(hone_model** out, const hone_model_options* options);
void hone_model_destroy(hone_model* model);

int hone_model_num_threads(const hone_model* model); /* the caller of run included */
int hone_model_num_inputs(const hone_model* model);
int hone_model_num_outputs(const hone_model* model);
const char* hone_model_input_name(const hone_model* model, int i);
const char* hone_model_output_name(const hone_model* model, int i);
/* dtype: the code of ONNX's TensorProto.DataType (1 = float). Any of the pointers may be null. */
int hone_model_input_info(const hone_model* model, int i, int* dtype, int* rank,
                          const int64_t** shape);
int hone_model_output_info(const hone_model* model, int i, int* dtype, int* rank,
                           const int64_t** shape);

/* Sets the shape of an input for later runs of a model that was compiled for ranges of shapes; at
 * first all shapes are the largest, which input_info and output_info return. Inputs that were never
 * set follow those that were, where both have the same size; inputs that were set must agree when a
 * run starts. Takes microseconds and allocates nothing. A shape out of the range is refused, and
 * nothing is changed. Since version 5, as the next four. */
int hone_model_set_input_shape(hone_model* model, int i, int rank, const int64_t* shape);
/* The shape of an input in the next run, and the smallest one that may be set. */
int hone_model_input_shape(const hone_model* model, int i, int* rank, const int64_t** shape);
int hone_model_input_least_shape(const hone_model* model, int i, int* rank, const int64_t** shape);
/* What dimension d varies with, such as "batch" or "past + seq"; null if it is fixed. */
const char* hone_model_input_dim(const hone_model* model, int i, int d);
const char* hone_model_output_dim(const hone_model* model, int i, int d);

/* Arrays are dense and row-major, in the order of the model's inputs and outputs, each of the shape
 * of this run. Allocates nothing. Arrays of the largest shape that are aligned to 64 bytes are used
 * in place; others are copied. Arrays in the memory of a device are refused. */
int hone_model_run(hone_model* model, const void* const* inputs, void* const* outputs);
/* The same, for a model of CUDA, on arrays in the memory of its device (others are refused), in a
 * CUstream or cudaStream_t, where null is the default stream. Returns when the work is in the
 * stream, unless a step runs on the host or a shape depends on the data: then when it is done. Runs
 * of one object follow each other, also in several streams. Since version 3, as the next two. */
int hone_model_run_device(hone_model* model, const void* const* inputs, void* const* outputs,
                          void* stream);
/* The name of the device; "" for a model of CPUs. */
const char* hone_model_device(const hone_model* model);
/* The most memory, in bytes, that the object has taken on the device: weights, intermediate
 * tensors, inputs and outputs. */
int64_t hone_model_device_bytes(const hone_model* model);
/* The shape of an output: in the next run, or, where it depends on the data, after a run. */
int hone_model_output_shape(const hone_model* model, int i, int* rank, const int64_t** shape);
/* The last failure of this object, or, for null, of this thread's last create; "" if none. */
const char* hone_model_last_error(const hone_model* model);

/* Times of the kernels: while enabled, each run records the seconds of every step. The steps then
 * run one by one; in other runs those that do not need each other may run at the same time. Steps
 * of one kernel number run the same code on other arrays; the class says what it computes. Steps
 * that follow each other under one name are parts of one task; the first of them has its FLOPs as
 * the model states them, those of the algorithm that needs the least, and its bytes: what it reads
 * and writes, each once. */
int hone_model_profile(hone_model* model, int enable);
int hone_model_num_steps(const hone_model* model);
const char* hone_model_step_name(const hone_model* model, int i);
int hone_model_step_kernel(const hone_model* model, int i);
const char* hone_model_step_class(const hone_model* model, int i);
double hone_model_step_flops(const hone_model* model, int i);
double hone_model_step_least_flops(const hone_model* model, int i);
double hone_model_step_bytes(const hone_model* model, int i);
double hone_model_step_seconds(const hone_model* model, int i);
/* A trace: while enabled, runs are profiled and also record when each thread works on each step of
 * the CPU. Enabling it takes 16 bytes for each step and thread, once. Since version 6, as the
 * next. */
int hone_model_trace(hone_model* model, int enable);
/* When thread 0 (the caller of run) to hone_model_num_threads - 1 worked on step i: nanoseconds
 * since the start of the last run. Returns 1 and changes nothing if it had no work of this step. */
int hone_model_step_thread(const hone_model* model, int i, int thread, int64_t* begin_ns,
                           int64_t* end_ns);

int hone_abi_version(void);

#ifdef __cplusplus
}
#endif

#endif /* HONE_MODEL_H_ */
