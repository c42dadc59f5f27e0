#include "hone/learn/representatives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "hone/base/rng.h"
#include "hone/compute/dag_testing.h"

namespace hone::learn {
namespace {

// Points on a line.
std::vector<float> distances_of(const std::vector<double>& points) {
  std::vector<float> distances;
  for (const double a : points) {
    for (const double b : points) distances.push_back(static_cast<float>(std::abs(a - b)));
  }
  return distances;
}

double cost_of(const std::vector<float>& distances, size_t points,
               const std::vector<size_t>& medoids) {
  double sum = 0;
  for (size_t i = 0; i < points; ++i) {
    float nearest = INFINITY;
    for (const size_t m : medoids) nearest = std::min(nearest, distances[m * points + i]);
    sum += nearest;
  }
  return sum;
}

TEST(k_medoids, finds_the_middle_of_each_cluster) {
  const auto distances = distances_of({0, 0.1, 0.2, 1, 1.1, 1.25, 2, 2.1, 2.3});
  std::vector<size_t> medoids = k_medoids(distances, 9, 3);
  std::sort(medoids.begin(), medoids.end());
  EXPECT_EQ(medoids, (std::vector<size_t>{1, 4, 7}));
  EXPECT_EQ(k_medoids(distances, 9, 1), (std::vector<size_t>{4}));
  EXPECT_EQ(k_medoids(distances, 9, 20).size(), 9U);
  EXPECT_EQ(k_medoids(distances_of({1, 1, 1}), 3, 2).size(), 2U);  // equal points
}

TEST(k_medoids, comes_near_to_the_best_of_all_choices_and_no_swap_helps) {
  Rng rng(5);
  for (int round = 0; round < 10; ++round) {
    std::vector<double> points(12);
    for (double& point : points) point = rng.uniform();
    const std::vector<float> distances = distances_of(points);
    const std::vector<size_t> medoids = k_medoids(distances, points.size(), 3);
    const double found = cost_of(distances, points.size(), medoids);
    double best = INFINITY;
    for (size_t a = 0; a < points.size(); ++a) {
      for (size_t b = 0; b < a; ++b) {
        for (size_t c = 0; c < b; ++c)
          best = std::min(best, cost_of(distances, points.size(), {a, b, c}));
      }
    }
    EXPECT_LE(found, 1.5 * best);
    for (size_t m = 0; m < medoids.size(); ++m) {
      for (size_t other = 0; other < points.size(); ++other) {
        std::vector<size_t> swapped = medoids;
        swapped[m] = other;
        EXPECT_GE(cost_of(distances, points.size(), swapped), found - 1e-5);
      }
    }
    EXPECT_EQ(k_medoids(distances, points.size(), 3), medoids);
  }
}

// Products, convolutions and sums of many sizes, with one and two threads.
Dataset make_tasks() {
  Dataset dataset;
  const auto add = [&](const compute::Dag& dag) {
    TaskTrials task;
    task.key = compute::task_key(dag);
    task.dag = std::make_shared<const compute::Dag>(dag);
    task.kernel_class = compute::kernel_class(dag);
    task.models = {"all"};
    for (const int threads : {1, 2}) {
      task.threads = threads;
      dataset.tasks.push_back(task);
    }
  };
  for (int n = 1; n <= 6; ++n) {
    add(compute::testing::gemm(16 * n, 32, 64));
    add(compute::testing::conv2d({.h = 7 * n, .w = 7 * n, .ic = 32, .oc = 16}));
  }
  std::sort(dataset.tasks.begin(), dataset.tasks.end(), [](const auto& a, const auto& b) {
    return std::pair(a.key, a.threads) < std::pair(b.key, b.threads);
  });
  return dataset;
}

TEST(representatives, are_of_different_kinds_and_stand_for_all) {
  const Dataset dataset = make_tasks();
  const std::vector<ListedTask> two = representatives(dataset, 2);
  ASSERT_EQ(two.size(), 2U);
  EXPECT_NE(two[0].kernel_class, two[1].kernel_class);
  EXPECT_EQ(two[0].cluster + two[1].cluster, 12);
  for (const ListedTask& task : two) {
    EXPECT_GT(task.similarity, 0);
    EXPECT_LE(task.similarity, 1 + 1e-6);
  }
  const std::vector<ListedTask> again = representatives(dataset, 2);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(again[i].key, two[i].key);
  EXPECT_EQ(representatives(dataset, 100).size(), 12U);
  EXPECT_TRUE(representatives(Dataset(), 2).empty());
}

TEST(task_list, is_read_as_it_was_written) {
  const TaskList list = {
      "device/2", {"resnet50"}, {{0x0123456789abcdef, "conv2d+relu", 7, 0.75}, {5, "dense", 3, 1}}};
  const auto read = parse_task_list(format(list), "list.json");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->device, "device/2");
  EXPECT_EQ(read->excluded_models, list.excluded_models);
  EXPECT_EQ(read->keys(), (std::set<uint64_t>{5, 0x0123456789abcdef}));
  EXPECT_EQ(read->tasks[0].kernel_class, "conv2d+relu");
  EXPECT_EQ(read->tasks[0].cluster, 7);
  EXPECT_EQ(read->tasks[0].similarity, 0.75);
}

TEST(task_list, says_what_is_wrong_with_a_file) {
  const std::string good = format({"d", {}, {{5, "dense", 3, 1}}});
  const auto message = [](const std::string& text) {
    const auto list = parse_task_list(text, "list.json");
    EXPECT_FALSE(list.ok());
    return std::string(list.status().message());
  };
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };
  EXPECT_NE(message(good.substr(0, 40)).find("list.json: no list of tasks that can be read"),
            std::string::npos);
  EXPECT_EQ(message(with("hone tasks", "hone split")),
            "list.json: no list of tasks, expected what hone dataset representatives writes");
  EXPECT_NE(message(with("\"version\": 1", "\"version\": 2")).find("version 2, expected 1"),
            std::string::npos);
  EXPECT_NE(message(with("0000000000000005", "5")).find("16"), std::string::npos);
  EXPECT_EQ(message(format({"d", {}, {{5, "a", 1, 1}, {5, "b", 1, 1}}})),
            "list.json: task 0000000000000005 is listed twice");
  EXPECT_EQ(message(format({"d", {}, {}})), "list.json: it lists no task");
}

TEST(task_list, divides_a_data_set) {
  const Dataset dataset = make_tasks();
  const std::set<uint64_t> keys = {dataset.tasks[0].key, 1};
  const Dataset among = tasks_among(dataset, keys), rest = tasks_except(dataset, keys);
  EXPECT_EQ(among.tasks.size(), 2U);
  EXPECT_EQ(among.tasks[1].key, dataset.tasks[0].key);
  EXPECT_EQ(rest.tasks.size(), dataset.tasks.size() - 2);
  Dataset whole = rest;
  append(whole, among);
  ASSERT_EQ(whole.tasks.size(), dataset.tasks.size());
  for (size_t i = 0; i < whole.tasks.size(); ++i) {
    EXPECT_EQ(whole.tasks[i].key, dataset.tasks[i].key);
    EXPECT_EQ(whole.tasks[i].threads, dataset.tasks[i].threads);
  }
}

}  // namespace
}  // namespace hone::learn
