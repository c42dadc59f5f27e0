// Two models inside one program: the first one runs on threads of its own, the second one on the
// program's. Their results are the same to the bit.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "first_net.h"  // generated, like their libraries
#include "second_net.h"
#include "thread_pool.h"

namespace {

using First = std::unique_ptr<first_net, void (*)(first_net*)>;
using Second = std::unique_ptr<second_net, void (*)(second_net*)>;

size_t num_values(int rank, const int64_t* shape) {
  size_t count = 1;
  for (int d = 0; d < rank; ++d) count *= static_cast<size_t>(shape[d]);
  return count;
}

First make_first() {
  first_net* model = nullptr;
  if (first_net_create(&model, 0) != 0)  // 0: all CPUs
    std::fprintf(stderr, "cannot start: %s\n", first_net_last_error(nullptr));
  return {model, first_net_destroy};
}

Second make_second(ThreadPool& pool) {
  second_net_options options = {};
  options.size = sizeof options;
  options.num_threads = pool.num_threads();
  options.parallel_for = ThreadPool::parallel_for;
  options.pool = &pool;
  second_net* model = nullptr;
  if (second_net_create_with(&model, &options) != 0)
    std::fprintf(stderr, "cannot start: %s\n", second_net_last_error(nullptr));
  return {model, second_net_destroy};
}

}  // namespace

int main(int argc, char** argv) {
  ThreadPool pool(argc > 1 ? std::atoi(argv[1]) : 2);
  const First first = make_first();
  const Second second = make_second(pool);
  if (!first || !second) return 1;
  if (first_net_num_inputs(first.get()) != 1 || first_net_num_outputs(first.get()) != 1) {
    std::fprintf(stderr, "the example needs a model of one input and one output\n");
    return 1;
  }
  int rank = 0;
  const int64_t* shape = nullptr;
  first_net_input_info(first.get(), 0, nullptr, &rank, &shape);
  std::vector<float> input(num_values(rank, shape));
  first_net_output_info(first.get(), 0, nullptr, &rank, &shape);
  std::vector<float> expected(num_values(rank, shape));
  std::vector<float> found(expected.size());
  const void* inputs[] = {input.data()};
  void* to_expected[] = {expected.data()};
  void* to_found[] = {found.data()};
  for (int run = 0; run < 100; ++run) {
    for (size_t i = 0; i < input.size(); ++i)
      input[i] = static_cast<float>((i * 31 + static_cast<size_t>(run)) % 64) / 64;
    if (first_net_run(first.get(), inputs, to_expected) != 0 ||
        second_net_run(second.get(), inputs, to_found) != 0) {
      std::fprintf(stderr, "run failed: %s%s\n", first_net_last_error(first.get()),
                   second_net_last_error(second.get()));
      return 1;
    }
    if (std::memcmp(expected.data(), found.data(), expected.size() * sizeof(float)) == 0) continue;
    std::fprintf(stderr, "run %d differs\n", run);
    return 1;
  }
  std::printf("%d threads of the model and %d of the program: the same %zu values\n",
              first_net_num_threads(first.get()), second_net_num_threads(second.get()),
              expected.size());
  return 0;
}
