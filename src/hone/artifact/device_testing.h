// artifact/device_testing.h - a small model for a device, for tests: y is a filter of x * w with
// zeros outside, as in artifact_testing.h. The products go to the arena, a step of the host or of
// the device copies them to a place with a border, the device filters. A step of the host finds the
// positive values of x. The same kernels are there in OpenCL C and in PTX.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hone/artifact/artifact_testing.h"
#include "hone/backend/device_code.h"
#include "hone/runtime/device/device.h"
#include "hone/runtime/device_model.h"
#include "hone/runtime/model.h"

namespace hone::artifact::testing {

using runtime::DeviceKind;

inline constexpr const char* kPocl = "Portable Computing Language";
inline constexpr int kThreads = 64;  // threads of a block, which runs one tile

inline constexpr const char* kOpenClHead = R"(
#define F(p) ((global float*)(p + off_##p))
#define INDEX ((first_tile + (long)get_group_id(0)) * get_local_size(0) + get_local_id(0))
#define BUFFER(p) global char *p, ulong off_##p
)";
inline constexpr const char* kOpenClScale = R"(
kernel void scale(BUFFER(x), BUFFER(w), BUFFER(a), long first_tile) {
  const long i = INDEX;
  if (i < 1000) F(a)[i] = F(x)[i] * F(w)[i];
}
)";
inline constexpr const char* kOpenClRest = R"(
kernel void pad(BUFFER(a), BUFFER(p), long first_tile) {
  const long i = INDEX;
  if (i < 1000) F(p)[i + 1] = F(a)[i];
}
kernel void filter(BUFFER(p), BUFFER(w), BUFFER(y), long first_tile) {
  const long i = INDEX;
  if (i < 1000) F(y)[i] = F(w)[0] * F(p)[i] + F(w)[1] * F(p)[i + 1] + F(w)[2] * F(p)[i + 2];
}
)";

// The beginning of a kernel in PTX: the pointers in %p0 and so on, the element's number in %i and
// its offset in bytes in %o.
inline std::string ptx_kernel(const std::string& name, int num_buffers, const std::string& body) {
  std::string text = ".visible .entry " + name + "(";
  for (int i = 0; i < num_buffers; ++i) text += fmt::format(".param .u64 {}_{}, ", name, i);
  text += fmt::format(R"(.param .u64 {}_first)
{{
  .reg .b64 %p<4>, %i, %o, %t;
  .reg .b32 %r;
  .reg .f32 %f<8>;
  .reg .pred %out;
  ld.param.u64 %i, [{}_first];
  mov.u32 %r, %ctaid.x;
  cvt.u64.u32 %t, %r;
  add.u64 %i, %i, %t;
  mov.u32 %r, %ntid.x;
  cvt.u64.u32 %t, %r;
  mul.lo.u64 %i, %i, %t;
  mov.u32 %r, %tid.x;
  cvt.u64.u32 %t, %r;
  add.u64 %i, %i, %t;
  setp.ge.s64 %out, %i, 1000;
  @%out ret;
  shl.b64 %o, %i, 2;
)",
                      name, name);
  for (int i = 0; i < num_buffers; ++i)
    text += fmt::format("  ld.param.u64 %p{}, [{}_{}];\n", i, name, i);
  return text + body + "  ret;\n}\n";
}

inline std::string ptx_head() { return ".version 6.0\n.target sm_52\n.address_size 64\n"; }
inline std::string ptx_scale() {
  return ptx_head() + ptx_kernel("scale", 3,
                                 "  add.u64 %t, %p0, %o;\n  ld.f32 %f0, [%t];\n"
                                 "  add.u64 %t, %p1, %o;\n  ld.f32 %f1, [%t];\n"
                                 "  mul.f32 %f0, %f0, %f1;\n"
                                 "  add.u64 %t, %p2, %o;\n  st.f32 [%t], %f0;\n");
}
inline std::string ptx_rest() {
  return ptx_head() +
         ptx_kernel("pad", 2,
                    "  add.u64 %t, %p0, %o;\n  ld.f32 %f0, [%t];\n"
                    "  add.u64 %t, %p1, %o;\n  st.f32 [%t+4], %f0;\n") +
         ptx_kernel("filter", 3,
                    "  add.u64 %t, %p0, %o;\n  ld.f32 %f0, [%t];\n  ld.f32 %f1, [%t+4];\n"
                    "  ld.f32 %f2, [%t+8];\n"
                    "  ld.f32 %f3, [%p1];\n  ld.f32 %f4, [%p1+4];\n  ld.f32 %f5, [%p1+8];\n"
                    "  mul.f32 %f0, %f0, %f3;\n  fma.rn.f32 %f0, %f1, %f4, %f0;\n"
                    "  fma.rn.f32 %f0, %f2, %f5, %f0;\n"
                    "  add.u64 %t, %p2, %o;\n  st.f32 [%t], %f0;\n");
}

inline backend::Executable gpu_executable(DeviceKind kind, const std::string& code,
                                          const std::vector<std::string>& kernels) {
  backend::Executable made;
  made.kind = target::Kind::kGpu;
  const bool cuda = kind == DeviceKind::kCuda;
  made.code = backend::encode_device_code(std::vector<backend::DeviceCode>{
      {.format = cuda ? runtime::CodeFormat::kPtx : runtime::CodeFormat::kOpenClSource,
       .capability = cuda ? 52 : 0,
       .data = code}});
  for (const std::string& kernel : kernels)
    made.entries.push_back({.symbol = kernel, .num_tiles = kNumTiles, .threads = kThreads});
  return made;
}

inline const std::vector<float>& scale_weights() {
  static const std::vector<float> weights = [] {
    std::vector<float> w(kLength);
    for (size_t i = 0; i < w.size(); ++i) w[i] = 1 + static_cast<float>(i % 3);
    return w;
  }();
  return weights;
}

// The model above. `host`: the border and the positive values are made by the host.
inline ArtifactSpec device_spec(DeviceKind kind, bool host, const std::string& kernels_object) {
  constexpr int64_t kBytes = kLength * 4, kCount = 0, kProducts = 64, kPadded = 4096 + 64;
  const bool cuda = kind == DeviceKind::kCuda;
  ArtifactSpec spec;
  spec.name = "device filter";
  spec.inputs = {{"x", DType::kF32, {1, kLength}}};
  spec.outputs = {{"y", DType::kF32, {1, kLength}}};
  if (host) spec.outputs.push_back({"positive", DType::kF32, {kLength}, kCount});
  spec.arena_bytes = kPadded + kBytes + 8;
  spec.zeroed = {{kPadded, 4}, {kPadded + kBytes + 4, 4}};
  spec.weights = {{scale_weights().data(), kBytes}, {kWeights, sizeof kWeights}};
  spec.device = kind;
  spec.device_name = cuda ? "" : kPocl;
  const std::string head = kOpenClHead;
  spec.executables = {
      gpu_executable(kind, cuda ? ptx_scale() : head + kOpenClScale, {"scale"}),
      gpu_executable(kind, cuda ? ptx_rest() : head + kOpenClRest, {"pad", "filter"})};
  if (!kernels_object.empty()) spec.executables.push_back({.code = kernels_object});
  spec.kernel_symbols = {"scale", host ? "test_pad" : "pad", "filter"};
  if (host) spec.kernel_symbols.push_back("test_positive");
  const auto argument = [](ArgumentKind of, int index, int64_t offset, int64_t bytes,
                           bool written) {
    return ArtifactArgument{of, index, offset, bytes, written};
  };
  const ArtifactArgument x = argument(ArgumentKind::kInput, 0, 0, kBytes, false);
  const ArtifactArgument products = argument(ArgumentKind::kArena, 0, kProducts, kBytes, false);
  const ArtifactArgument padded = argument(ArgumentKind::kArena, 0, kPadded, kBytes + 8, true);
  spec.steps = {
      {"scale",
       0,
       kNumTiles,
       0,
       1.0 * kLength,
       {x, argument(ArgumentKind::kWeight, 0, 0, kBytes, false), products},
       "scale"},
      {"pad", 1, kNumTiles, 0, 0, {products, padded}},
      {"filter",
       2,
       kNumTiles,
       0,
       5.0 * kLength,
       {padded, argument(ArgumentKind::kWeight, 1, 0, 12, false),
        argument(ArgumentKind::kOutput, 0, 0, kBytes, true)},
       "conv1d"},
  };
  if (host)
    spec.steps.push_back({"positive",
                          3,
                          1,
                          0,
                          0,
                          {x, argument(ArgumentKind::kOutput, 1, 0, kBytes, true),
                           argument(ArgumentKind::kArena, 0, kCount, 8, true)}});
  return spec;
}

inline std::vector<float> device_output(const std::vector<float>& x) {
  std::vector<float> products(x.size());
  for (size_t i = 0; i < x.size(); ++i) products[i] = x[i] * scale_weights()[i];
  return filter_output(products);
}

inline std::vector<float> positives(const std::vector<float>& x) {
  std::vector<float> found;
  for (const float value : x)
    if (value > 0) found.push_back(value);
  return found;
}

}  // namespace hone::artifact::testing
