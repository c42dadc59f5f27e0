// Candidates per second on one core: sampled, made concrete and predicted by the default model,
// with nothing kept from one to the next. Prints how many are distinct and legal.
//   hone_candidates [SECONDS]
#include <cstdlib>
#include <unordered_set>

#include "hone/base/clock.h"
#include "hone/compute/dag_testing.h"
#include "hone/cost/registry.h"
#include "hone/target/target.h"
#include "hone/tune.h"

namespace hone {
namespace {

struct Count {
  int64_t sampled = 0, legal = 0;
  std::unordered_set<uint64_t> distinct;  // legal ones
  double seconds = 0;
  double checksum = 0;  // of the predictions, so that none can be left out
};

Result<Count> measure(const compute::Dag& dag, const cost::CostModel& model, double seconds) {
  const target::Target& target = target::host();
  HONE_ASSIGN_OR_RETURN(const space::Space space, space::Space::create(dag, target));
  const uint64_t key = compute::task_key(dag);
  Rng rng(1);
  Count count;
  const double start = real_clock().now_seconds();
  while ((count.seconds = real_clock().now_seconds() - start) < seconds) {
    for (int i = 0; i < 64; ++i) {
      const space::Point point = space.sample(rng);
      ++count.sampled;
      const Result<space::Candidate> candidate = space.instantiate(point);
      if (!candidate.ok()) continue;
      const cost::Query query{&*candidate, &target, 1, key};
      HONE_ASSIGN_OR_RETURN(const std::vector<double> predicted, model.predict({&query, 1}));
      count.checksum += predicted[0];
      ++count.legal;
      count.distinct.insert(hash(point));
    }
  }
  return count;
}

int run(double seconds) {
  const auto model = cost::make_model(CompileOptions().cost);
  HONE_ASSERT(model.ok(), "the default cost model exists");
  const std::pair<const char*, compute::Dag> tasks[] = {
      {"conv2d+bias+relu 3x3, 56x56x64 -> 64",
       compute::testing::conv2d({.h = 56, .w = 56, .ic = 64, .oc = 64})},
      {"conv2d+bias+relu 3x3, 14x14x256 -> 256",
       compute::testing::conv2d({.h = 14, .w = 14, .ic = 256, .oc = 256})},
      {"matmul 512x512x512", compute::testing::gemm(512, 512, 512)}};
  for (const auto& [name, dag] : tasks) {
    const Result<Count> count = measure(dag, **model, seconds);
    if (!count.ok()) {
      fmt::print(stderr, "hone: {}: {}\n", name, count.status().message());
      return 1;
    }
    fmt::print(
        "{:<40} {:>8.0f} distinct legal candidates/s  ({} sampled, {} legal, {} distinct, mean {:.3g} s)\n",
        name, static_cast<double>(count->distinct.size()) / count->seconds, count->sampled,
        count->legal, count->distinct.size(), count->checksum / static_cast<double>(count->legal));
  }
  return 0;
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) { return hone::run(argc > 1 ? std::atof(argv[1]) : 2.0); }
