// One matrix product, Hone's artifact against oneDNN with packed weights, interleaved on one
// thread.
//   hone_gemm_vs_onednn MODEL.so [ROUNDS]
// MODEL.so has one input f32 [M, K] and one output f32 [M, N], and constant weights: gemm.py makes
// it.
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <dnnl.hpp>

#include "hone/base/clock.h"
#include "hone/base/rng.h"
#include "hone/base/status.h"
#include "hone/model.h"

namespace hone {
namespace {

constexpr double kBurstSeconds = 0.05;  // one turn; the first half of it warms up

// The median time of a run within one turn.
template <typename Run>
double turn(const Run& run) {
  std::vector<double> times;
  Clock& clock = real_clock();
  const double start = clock.now_seconds();
  while (clock.now_seconds() < start + kBurstSeconds) {
    const double begin = clock.now_seconds();
    run();
    if (begin > start + kBurstSeconds / 2) times.push_back(clock.now_seconds() - begin);
  }
  if (times.empty()) return clock.now_seconds() - start;
  std::nth_element(times.begin(), times.begin() + std::ssize(times) / 2, times.end());
  return times[times.size() / 2];
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
  return values[values.size() / 2];
}

// x [m, k] times weights [k, n] that oneDNN has laid out as it likes.
class OneDnn {
 public:
  OneDnn(int64_t m, int64_t n, int64_t k, float* x, float* y) {
    using dnnl::memory;
    const auto type = memory::data_type::f32;
    const memory::desc from({m, k}, type, memory::format_tag::ab),
        to({m, n}, type, memory::format_tag::ab);
    const memory::desc weights({k, n}, type, memory::format_tag::any);
    const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(from, weights, to), engine_);
    matmul_ = dnnl::matmul(description);
    memory plain({{k, n}, type, memory::format_tag::ab}, engine_),
        packed(description.weights_desc(), engine_);
    Rng rng(2);
    for (int64_t i = 0; i < k * n; ++i)
      static_cast<float*>(plain.get_data_handle())[i] = static_cast<float>(rng.normal());
    dnnl::reorder(plain, packed).execute(stream_, plain, packed);
    stream_.wait();
    arguments_ = {{DNNL_ARG_SRC, memory(from, engine_, x)},
                  {DNNL_ARG_WEIGHTS, packed},
                  {DNNL_ARG_DST, memory(to, engine_, y)}};
  }
  void run() {
    matmul_.execute(stream_, arguments_);
    stream_.wait();
  }

 private:
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  dnnl::matmul matmul_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

Status compare(const std::string& path, int rounds) {
  HONE_ASSIGN_OR_RETURN(Model model, Model::load(path, 1));
  const bool one = model.inputs().size() == 1 && model.outputs().size() == 1;
  if (!one || model.inputs()[0].shape.size() != 2 || model.outputs()[0].shape.size() != 2) {
    return invalid("{}: expected one input and one output of rank 2", path);
  }
  const int64_t m = model.inputs()[0].shape[0], k = model.inputs()[0].shape[1],
                n = model.outputs()[0].shape[1];
  Tensor x(DType::kF32, {m, k}), y(DType::kF32, {m, n}), z(DType::kF32, {m, n});
  Rng rng(1);
  for (float& value : x.as<float>()) value = static_cast<float>(rng.normal());
  OneDnn rival(m, n, k, static_cast<float*>(x.data()), static_cast<float*>(z.data()));
  const void* from[] = {x.data()};
  void* to[] = {y.data()};
  Status failure;
  std::vector<double> ours, theirs, ratios;
  for (int round = 0; round < rounds; ++round) {
    ours.push_back(turn([&] {
      if (Status status = model.run(from, to); !status.ok()) failure = std::move(status);
    }));
    theirs.push_back(turn([&] { rival.run(); }));
    ratios.push_back(theirs.back() / ours.back());
    HONE_RETURN_IF_ERROR(failure);
  }
  const double flops = 2.0 * static_cast<double>(m * n * k);
  fmt::print(
      "{}x{}x{} f32, one thread: hone {:.1f} GFLOP/s, oneDNN {:.1f} GFLOP/s, ratio {:.3f} (goal 0.9)\n",
      m, n, k, flops / median(ours) * 1e-9, flops / median(theirs) * 1e-9, median(ratios));
  return ok_status();
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: hone_gemm_vs_onednn MODEL.so [ROUNDS]\n");
    return 2;
  }
  omp_set_num_threads(1);
  const hone::Status status = hone::compare(argv[1], argc > 2 ? std::atoi(argv[2]) : 41);
  if (!status.ok()) fmt::print(stderr, "hone: {}\n", status.message());
  return status.ok() ? 0 : 1;
}
