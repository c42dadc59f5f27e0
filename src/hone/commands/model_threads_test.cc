// Threads of a compiled model: how many run it changes no bit of its results, and what is too small
// for them wakes none. The threads are the caller's, so that there can be more than CPUs, and the
// caller counts how often they are asked for.
#include <dlfcn.h>
#include <fenv.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "hone/base/file.h"
#include "hone/commands/tune.h"
#include "hone/db/roofline_store.h"
#include "hone/graph/test_model.h"
#include "hone/runtime/hone_model.h"
#include "hone/target/target.h"

namespace hone {
namespace {

struct Threads {
  int calls = 0, most = 0;
  static void parallel_for(void* self, int count, hone_model_task task, void* context) {
    Threads& own = *static_cast<Threads*>(self);
    ++own.calls;
    own.most = std::max(own.most, count);
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) threads.emplace_back(task, context, i);
    for (std::thread& thread : threads) thread.join();
  }
};

struct Outcome {
  Tensor output;
  Threads threads;
};

// A library's only output of its only input. `own`: by threads of the model.
Outcome run_with_threads(const std::string& library, const Tensor& input, Shape shape,
                         int num_threads, bool own = false) {
  Outcome outcome{Tensor(DType::kF32, std::move(shape)), {}};
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(handle, nullptr) << dlerror();
  if (handle == nullptr) return outcome;
  const auto create =
      reinterpret_cast<decltype(&hone_model_create_with)>(dlsym(handle, "hone_model_create_with"));
  const auto run = reinterpret_cast<decltype(&hone_model_run)>(dlsym(handle, "hone_model_run"));
  const auto destroy =
      reinterpret_cast<decltype(&hone_model_destroy)>(dlsym(handle, "hone_model_destroy"));
  hone_model_options options = {};
  options.size = sizeof options;
  options.num_threads = num_threads;
  if (!own) options.parallel_for = Threads::parallel_for;
  options.pool = &outcome.threads;
  hone_model* model = nullptr;
  EXPECT_EQ(create(&model, &options), 0);
  const void* inputs[] = {input.data()};
  void* outputs[] = {outcome.output.data()};
  EXPECT_EQ(run(model, inputs, outputs), 0);
  destroy(model);
  dlclose(handle);
  return outcome;
}

TEST(model_threads, any_number_gives_the_same_bits) {
  Rng rng(5);
  graph::TestModel model;
  const auto pads = [](int64_t n) { return graph::Attribute{Shape{n, n, n, n}}; };
  const Tensor input = graph::random_tensor({1, 8, 19, 23}, rng);
  model.input("x", input.shape()).constant("v", graph::random_tensor({24, 8, 3, 3}, rng));
  model.constant("w", graph::random_tensor({24, 1, 5, 5}, rng));
  model.constant("f", graph::random_tensor({24 * 10 * 12, 33}, rng));
  model.node("Conv", {"x", "v"}, {"a"}, {{"pads", pads(1)}}).node("Relu", {"a"}, {"b"});
  model.node("Conv", {"b", "w"}, {"c"}, {{"pads", pads(2)}, {"group", int64_t{24}}});
  model.node("MaxPool", {"c"}, {"d"},
             {{"kernel_shape", Shape{3, 3}}, {"strides", Shape{2, 2}}, {"pads", pads(1)}});
  model.node("Flatten", {"d"}, {"e"}).node("MatMul", {"e", "f"}, {"g"});
  model.node("Softmax", {"g"}, {"y"}).output("y");
  const TempDir folder = std::move(TempDir::create()).value();
  const std::string library = folder.file("model.so");
  const graph::Graph graph = model.graph();
  CompileOptions options;
  options.records.use_db = false;
  options.target.threads = 64;  // each kernel may ask for all
  const Result<CompileSummary> summary = compile(graph, library, options);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  const Outcome one = run_with_threads(library, input, {1, 33}, 1);
  EXPECT_EQ(one.threads.calls, 0);
  EXPECT_LT(graph::relative_error(one.output, graph::run_plainly(graph, {input})[0]), 1e-4);
  for (const int threads : {2, 3, 7, 64}) {
    const Outcome several = run_with_threads(library, input, {1, 33}, threads);
    EXPECT_GE(several.threads.most, std::min(threads, 8)) << "there are enough tiles";
    EXPECT_EQ(std::memcmp(several.output.data(), one.output.data(), 33 * sizeof(float)), 0)
        << threads << " threads";
  }
}

// A roofline of a machine with so many cores, as this one's.
void store_fork_join(const std::string& path, std::vector<trial::ForkJoin> fork_join) {
  trial::Roofline roofline{.cores = fork_join.back().threads,
                           .flops = {1e11, 1e11},
                           .fork_join = std::move(fork_join),
                           .levels = {{0, 0, 1, {1e10, 1e10}, {1e10, 1e10}}}};
  const Status saved = db::save_roofline(path, target::device_key(target::host()), roofline);
  ASSERT_TRUE(saved.ok()) << saved.message();
}

TEST(model_threads, a_kernel_that_gains_less_than_a_fork_and_join_wakes_none) {
  Rng rng(5);
  graph::TestModel model;
  model.input("x", {8, 64}).node("Softmax", {"x"}, {"s"}).node("Softmax", {"s"}, {"y"});
  const graph::Graph graph = model.output("y").graph();
  const Tensor input = graph::random_tensor({8, 64}, rng);
  const TempDir folder = std::move(TempDir::create()).value();
  const std::string library = folder.file("model.so");
  CompileOptions options;
  options.target.threads = 2;
  options.records.db = folder.file("limits.db");
  for (const auto& [seconds, small] : {std::pair{1e-9, 0}, {1e-3, 2}}) {
    store_fork_join(options.records.db, {{2, seconds}});
    const Result<CompileSummary> summary = compile(graph, library, options);
    ASSERT_TRUE(summary.ok()) << summary.status().message();
    EXPECT_EQ(summary->calls, 2);
    EXPECT_EQ(summary->small, small) << seconds;
    for (const int threads : {2, 64})
      EXPECT_EQ(run_with_threads(library, input, {8, 64}, threads).threads.calls, 2 - small)
          << seconds;
  }
}

// On a machine of 64 cores, of which two are woken soon and all of them late.
TEST(model_threads, a_kernel_wakes_as_many_as_it_gains_from) {
  Rng rng(5);
  graph::TestModel model;
  const graph::Graph graph =
      model.input("x", {64, 256}).node("Softmax", {"x"}, {"y"}).output("y").graph();
  const Tensor input = graph::random_tensor({64, 256}, rng);
  const TempDir folder = std::move(TempDir::create()).value();
  const std::string library = folder.file("model.so");
  CompileOptions options;
  options.target.threads = 64;
  options.records.db = folder.file("limits.db");
  const auto most = [&](std::vector<trial::ForkJoin> fork_join) {
    store_fork_join(options.records.db, std::move(fork_join));
    EXPECT_TRUE(compile(graph, library, options).ok());
    return run_with_threads(library, input, {64, 256}, 64).threads.most;
  };
  const int all = most({{2, 1e-9}, {64, 1e-9}});
  EXPECT_GT(all, 8) << "there are enough tiles";
  EXPECT_EQ(most({{2, 1e-9}, {4, 1e-9}, {8, 1e-2}, {64, 1e-2}}), 4);
  EXPECT_EQ(most({{2, 1e-9}, {4, 1e-2}, {64, 1e-2}}), 2);
  EXPECT_EQ(most({{2, 1e-2}, {64, 2e-2}}), 0);
}

// Products, sums, divisions by zero, overflows and functions of double, in the caller's mode.
TEST(model_threads, the_callers_floating_point_mode_changes_nothing) {
  Rng rng(6);
  graph::TestModel model;
  Tensor input = graph::random_tensor({8, 64}, rng);
  for (int64_t i = 0; i < 64; i += 7) {
    input.set(i, 0);
    input.set(64 + i, 3e38);
    input.set(128 + i, 1e-30);
  }
  model.input("x", input.shape()).constant("w", graph::random_tensor({64, 64}, rng));
  Tensor third(DType::kF64, {1});
  third.set(0, 1.0 / 3);
  model.constant("third", third);
  model.node("MatMul", {"x", "w"}, {"product"}).node("Reciprocal", {"x"}, {"inverse"});
  model.node("Mul", {"x", "x"}, {"square"});
  model.node("Cast", {"x"}, {"wide"}, {{"to", int64_t{11}}});
  model.node("Mul", {"wide", "third"}, {"scaled"}).node("Exp", {"scaled"}, {"exp"});
  model.node("Cast", {"exp"}, {"narrow"}, {{"to", int64_t{1}}});
  model.node("Concat", {"product", "inverse", "square", "narrow"}, {"y"}, {{"axis", int64_t{0}}});
  const graph::Graph graph = model.output("y").graph();
  const TempDir folder = std::move(TempDir::create()).value();
  const std::string library = folder.file("model.so");
  CompileOptions options;
  options.records.use_db = false;
  options.target.threads = 64;
  const Result<CompileSummary> summary = compile(graph, library, options);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  const Shape shape = {32, 64};
  const Outcome expected = run_with_threads(library, input, shape, 1);
  fenv_t before;
  fegetenv(&before);
  for (const int threads : {1, 2, 4}) {
    for (const bool own : {false, true}) {
      for (const int rounding : {FE_UPWARD, FE_TOWARDZERO}) {
        fesetround(rounding);
        feenableexcept(FE_ALL_EXCEPT);
        const Outcome found = run_with_threads(library, input, shape, threads, own);
        const int rounding_after = fegetround(), traps_after = fegetexcept();
        fesetenv(&before);
        EXPECT_EQ(rounding_after, rounding);
        EXPECT_EQ(traps_after, FE_ALL_EXCEPT);
        EXPECT_EQ(std::memcmp(found.output.data(), expected.output.data(),
                              static_cast<size_t>(found.output.bytes())),
                  0)
            << threads << " threads, " << (own ? "the model's" : "the caller's");
      }
    }
  }
}

}  // namespace
}  // namespace hone
