#include "hone/search/transfer.h"

#include <gtest/gtest.h>

#include "hone/base/file.h"
#include "hone/compute/dag_testing.h"
#include "hone/compute/dag_text.h"
#include "hone/cost/registry.h"
#include "hone/db/registry.h"
#include "hone/search/transfer_source.h"
#include "hone/space/portable_point.h"

namespace hone::search {
namespace {

compute::Dag conv(int64_t size, int64_t channels, bool residual = false) {
  return compute::testing::conv2d(
      {.h = size, .w = size, .ic = channels, .oc = channels, .residual = residual});
}

// A task with its space.
struct Fixture {
  compute::Dag dag;
  target::Target target;
  std::unique_ptr<cost::CostModel> model = std::move(cost::make_model("analytic")).value();
  space::Space space;
  SearchTask task;

  explicit Fixture(compute::Dag d, target::Target t = target::find("x86-64-avx2").value(),
                   trial::Accuracy accuracy = trial::Accuracy::kDefault)
      : dag(std::move(d)),
        target(std::move(t)),
        space(space::Space::create(dag, target, accuracy).value()) {
    task = {&space, &target, model.get(), 1, compute::task_key(dag), 1};
  }
  // As a tuner would have stored it.
  [[nodiscard]] trial::Record record(const space::Point& point, std::string name = "resnet") const {
    trial::Record record;
    record.task = task.key;
    record.kernel_class = compute::kernel_class(dag);
    record.task_text = compute::describe(dag);
    record.device = "here";
    record.algorithm = space.algorithm(point.sketch);
    record.steps = schedule::to_string(space.steps(point));
    record.accuracy = trial::accuracy_of(record.steps);
    record.decisions = space::to_string(space::to_portable(space, point));
    record.centre = 1e-3;
    record.verified = true;
    record.model = std::move(name);
    return record;
  }
};

TransferPool pool_of(std::initializer_list<trial::Record> records) {
  TransferPool pool;
  for (const trial::Record& record : records) pool.add(record);
  return pool;
}

TEST(transfer, candidates_are_legal_distinct_and_ranked) {
  const Fixture from(conv(28, 32)), to(conv(14, 64));
  Rng rng(2);
  TransferPool pool;
  for (int i = 0; i < 12; ++i) pool.add(from.record(from.space.sample(rng)));
  const TransferResult result = transfer(to.task, to.dag, pool, {.device = "here"});
  EXPECT_EQ(result.sources, 12);
  ASSERT_GE(result.candidates.size(), 12U);
  std::set<uint64_t> hashes;
  double last = 0;
  for (const Transferred& candidate : result.candidates) {
    EXPECT_TRUE(schedule::replay(to.dag, candidate.steps).ok());
    EXPECT_TRUE(hashes.insert(schedule::hash(candidate.steps)).second);
    EXPECT_GE(candidate.predicted, last);
    EXPECT_EQ(candidate.replayed, schedule::to_string(candidate.steps) == candidate.from->steps);
    if (candidate.point) {
      EXPECT_TRUE(to.space.legal(*candidate.point));
      EXPECT_EQ(to.space.steps(*candidate.point), candidate.steps);
    }
    last = candidate.predicted;
  }
}

TEST(transfer, steps_as_they_are_may_not_apply_and_near_classes_need_their_points) {
  const Fixture from(conv(28, 32)), near(conv(28, 32, true));
  const TransferPool pool = pool_of({from.record(from.space.default_point())});
  const TransferResult plain = transfer(near.task, near.dag, pool, {.as_they_are = true});
  const TransferResult all = transfer(near.task, near.dag, pool, {});
  EXPECT_EQ(plain.sources, 1);
  EXPECT_EQ(plain.candidates.size() + static_cast<size_t>(plain.invalid), 1U);
  ASSERT_FALSE(all.candidates.empty());
  EXPECT_TRUE(all.candidates[0].point.has_value());
  EXPECT_EQ(transfer(near.task, near.dag, pool, {.same_class = true}).sources, 0);
}

// The kernels of one transformer, tuned for one length of its sequences, used for another.
TEST(transfer, from_one_sequence_length_to_another) {
  using compute::testing::attention, compute::testing::gemm;
  const auto kernels = [](int64_t length) {
    std::vector<compute::Dag> dags;
    dags.push_back(gemm(length, 192, 64));
    dags.push_back(attention(4, length, length, 16));
    return dags;
  };
  for (const auto& [known, wanted] : {std::pair(128, 64), std::pair(64, 96)}) {
    std::vector<compute::Dag> sources = kernels(known), targets = kernels(wanted);
    for (size_t k = 0; k < sources.size(); ++k) {
      const Fixture from(std::move(sources[k])), to(std::move(targets[k]));
      ASSERT_EQ(compute::kernel_class(from.dag), compute::kernel_class(to.dag));
      ASSERT_NE(from.task.key, to.task.key);
      Rng rng(4);
      TransferPool pool;
      for (int i = 0; i < 6; ++i) pool.add(from.record(from.space.sample(rng), "bert"));
      const TransferResult result = transfer(to.task, to.dag, pool, {.same_class = true});
      EXPECT_EQ(result.sources, 6);
      EXPECT_LE(result.invalid, 6);
      int points = 0;
      for (const Transferred& candidate : result.candidates) {
        EXPECT_TRUE(schedule::replay(to.dag, candidate.steps).ok());
        points += candidate.point.has_value();
      }
      EXPECT_GT(points, 0) << compute::kernel_class(to.dag) << " " << known << " to " << wanted;
    }
  }
}

TEST(transfer, other_families_are_not_asked) {
  const Fixture from(compute::testing::gemm(64, 64, 64)), to(conv(14, 64));
  const TransferPool pool = pool_of({from.record(from.space.default_point())});
  EXPECT_EQ(transfer(to.task, to.dag, pool, {}).sources, 0);
}

TEST(transfer, alike_shapes_come_first_when_there_are_too_many) {
  const Fixture small(conv(7, 256)), large(conv(56, 64)), to(conv(48, 64));
  const TransferPool pool = pool_of({small.record(small.space.default_point(), "far"),
                                     large.record(large.space.default_point(), "close")});
  const TransferResult result = transfer(to.task, to.dag, pool, {.nearest = {.sources = 1}});
  ASSERT_FALSE(result.candidates.empty());
  for (const Transferred& candidate : result.candidates) EXPECT_EQ(candidate.from->model, "close");
}

TEST(transfer, records_of_another_device_become_points_of_this_one) {
  const Fixture wide(conv(28, 64), target::find("x86-64-avx512").value()), to(conv(28, 64));
  const TransferPool pool = pool_of({wide.record(wide.space.default_point())});
  const TransferResult result = transfer(to.task, to.dag, pool, {.device = "there"});
  ASSERT_FALSE(result.candidates.empty());
  EXPECT_TRUE(result.candidates[0].point.has_value());
}

TEST(transfer, an_algorithm_that_the_accuracy_forbids_is_not_carried_over) {
  const Fixture from(conv(28, 32)),
      strict(conv(56, 32), target::find("x86-64-avx2").value(), trial::Accuracy::kStrict);
  ASSERT_GT(from.space.num_sketches(), 1);
  const TransferPool pool = pool_of({from.record(from.space.default_point(1))});
  const TransferResult result = transfer(strict.task, strict.dag, pool, {});
  EXPECT_TRUE(result.candidates.empty());
  EXPECT_EQ(result.invalid, 1);
}

TEST(transfer, records_without_decisions_are_located) {
  const Fixture from(conv(28, 32)), to(conv(28, 64));
  trial::Record record = from.record(from.space.default_point());
  record.decisions.clear();
  const TransferResult result = transfer(to.task, to.dag, pool_of({record}), {});
  ASSERT_FALSE(result.candidates.empty());
}

TEST(transfer_pool, of_a_store_knows_shapes_whatever_the_store_keeps_of_a_task) {
  const Fixture a(conv(28, 32)), b(conv(14, 32));
  trial::Record whole = a.record(a.space.default_point()), old = b.record(b.space.default_point());
  whole.task_text = compute::to_text(a.dag);
  for (trial::Record* record : {&whole, &old}) record->times = {1e-3}, record->version = "1";
  const Result<TempDir> folder = TempDir::create();
  ASSERT_TRUE(folder.ok());
  const Result<std::unique_ptr<db::Store>> store = db::open_store(folder->file("hone.db"));
  ASSERT_TRUE(store.ok() && (*store)->add(std::vector{whole, old}).ok());
  TransferPool pool;
  ASSERT_TRUE(pool.add_store(**store).ok());
  ASSERT_EQ(pool.records().size(), 2U);
  for (const trial::Record& record : pool.records()) {
    EXPECT_EQ(record.task_text, compute::describe(record.task == a.task.key ? a.dag : b.dag));
  }
}

TEST(transfer_pool, unverified_records_and_excluded_tasks_are_not_there) {
  const Fixture a(conv(28, 32)), b(conv(14, 32));
  trial::Record unverified = a.record(a.space.default_point());
  unverified.verified = false;
  // The task of `a` occurs in both models.
  TransferPool pool =
      pool_of({unverified, a.record(a.space.default_point(), "one"),
               a.record(a.space.default_point(), "two"), b.record(b.space.default_point(), "two")});
  EXPECT_EQ(pool.records().size(), 3U);
  TransferPool only_two = pool;
  only_two.keep_model("two");
  EXPECT_EQ(only_two.records().size(), 2U);
  pool.exclude_tasks({a.task.key});
  ASSERT_EQ(pool.records().size(), 1U);
  EXPECT_EQ(pool.records()[0].task, b.task.key);
}

TEST(transfer, shapes_are_compared_place_by_place) {
  const std::string a = compute::describe(conv(28, 32)), b = compute::describe(conv(28, 64)),
                    c = compute::describe(conv(7, 512));
  EXPECT_EQ(shape_distance(a, a), 0);
  EXPECT_GT(shape_distance(a, b), 0);
  EXPECT_GT(shape_distance(a, c), shape_distance(a, b));
  EXPECT_EQ(shape_distance("conv2d data[2]", "gemm other[2]"), INFINITY);
}

TEST(nearest, correlation_sees_which_extents_are_larger_and_not_how_large) {
  const std::string a = compute::describe(conv(56, 16)), twice = compute::describe(conv(112, 32)),
                    deep = compute::describe(conv(7, 512));
  EXPECT_NEAR(attribute_correlation(a, a), 1, 1e-6);
  EXPECT_GT(attribute_correlation(a, twice), attribute_correlation(a, deep));
  EXPECT_LT(attribute_correlation(a, deep), 0.6);
  EXPECT_EQ(attribute_correlation("conv2d data[2]", "gemm other[2]"), 0);
}

// A convolution of 56 x 56 x 16 is nearer by its shape to one of 28 x 28 x 32, but more channels
// than pixels in a row is another order of extents; 224 x 224 x 64 has its own.
TEST(nearest, distance_and_correlation_choose_other_sources) {
  const Fixture to(conv(56, 16)), near(conv(28, 32)), alike(conv(224, 64));
  const TransferPool pool =
      pool_of({near.record(near.space.default_point()), alike.record(alike.space.default_point())});
  const auto first_source = [&](std::string_view nearest) {
    const Nearest how = parse_nearest(nearest).value();
    const TransferResult found = transfer(to.task, to.dag, pool, {.nearest = how});
    return found.candidates.empty() ? 0 : found.candidates[0].from->task;
  };
  EXPECT_EQ(first_source("shapes:sources=1"), near.task.key);
  EXPECT_EQ(first_source("spearman:sources=1"), alike.task.key);
}

TEST(nearest, below_tau_no_schedule_is_taken_over) {
  const Fixture to(conv(56, 16)), deep(conv(7, 512));
  const TransferPool pool = pool_of({deep.record(deep.space.default_point())});
  const auto sources = [&](std::string_view nearest) {
    return transfer(to.task, to.dag, pool, {.nearest = parse_nearest(nearest).value()}).sources;
  };
  EXPECT_EQ(sources("shapes"), 1);
  EXPECT_EQ(sources("spearman"), 0);
  EXPECT_EQ(sources("spearman:tau=-1"), 1);
}

TEST(nearest, an_error_says_what_was_expected) {
  EXPECT_EQ(parse_nearest("spearman:tau=0.5,sources=3").value().sources, 3);
  EXPECT_NE(parse_nearest("pearson").status().message().find("shapes or spearman"),
            std::string::npos);
  EXPECT_NE(parse_nearest("spearman:tau=2").status().message().find("tau"), std::string::npos);
  EXPECT_FALSE(parse_nearest("spearman:").ok());
  EXPECT_FALSE(parse_nearest("shapes:tau=0.5").ok());
}

// Table 2 of the paper in small: squares of shares, square roots of numbers.
TEST(transfer_source, many_schedules_of_costly_classes_win) {
  const auto record = [](std::string model, std::string kernel_class, uint64_t task) {
    trial::Record r;
    r.model = std::move(model), r.kernel_class = std::move(kernel_class), r.task = task;
    r.verified = true;
    return r;
  };
  TransferPool pool;
  for (uint64_t t = 0; t < 9; ++t) pool.add(record("googlenet", "conv2d+bias+relu", t));
  for (uint64_t t = 20; t < 45; ++t) pool.add(record("bert", "matmul", t));
  pool.add(record("alexnet", "conv2d+bias+relu", 50));
  pool.add(record("alexnet", "conv2d+bias+relu", 50));
  pool.add(record("gpt2", "softmax", 60));
  const std::vector<SourceScore> scores =
      rank_sources(pool, {{"conv2d+bias+relu", 8.0}, {"matmul", 2.0}});
  ASSERT_EQ(scores.size(), 3U);
  EXPECT_EQ(scores[0].model, "googlenet");
  EXPECT_DOUBLE_EQ(scores[0].score, 0.64 * 3);
  EXPECT_EQ(scores[1].model, "alexnet");
  EXPECT_DOUBLE_EQ(scores[1].score, 0.64);
  EXPECT_EQ(scores[1].tasks, 1);
  EXPECT_EQ(scores[2].model, "bert");
  EXPECT_DOUBLE_EQ(scores[2].score, 0.04 * 5);
}

}  // namespace
}  // namespace hone::search
