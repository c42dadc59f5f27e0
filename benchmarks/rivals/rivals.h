// benchmarks/rivals/rivals.h - the C interface of the library that benchmarks/kernels.py loads:
// operators of oneDNN and OpenBLAS in the process that times Hone, too. A program is JSON:
// {"format": "any|plain|nhwc|blocked", "threads": 1, "ops": [...], "outputs": [names], "tensors":
// [{"name": "x", "dims": [1, 3], "constant": false}, ...]}; operators.cc says which operators there
// are. Weights are packed at creation; reorders between operators are part of rival_check only, and
// so are not timed.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

// arrays: the tensors' values, dense and row-major, copied. Null on failure, with the reason in
// `message`.
void* rival_create(const char* json, const float* const* arrays, char* message, int message_size);
// All operators `times` times; what rival_check left in the buffers is what they work on.
void rival_run(void* program, int times);
// All operators and the reorders between them, then output `index` as a dense row-major array.
int rival_check(void* program, int index, float* output);
// The implementations that oneDNN chose, separated by blanks.
const char* rival_describe(void* program);
void rival_destroy(void* program);
// FLOP/s of float32 fused multiply-adds on so many threads at once, with vectors of so many bits
// (256 or 512).
double rival_peak_flops(int threads, int bits);

#ifdef __cplusplus
}
#endif
