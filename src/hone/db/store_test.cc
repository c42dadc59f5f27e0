#include "hone/db/store.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "hone/base/rng.h"
#include "hone/db/postgres_schema.h"
#include "hone/db/schema.h"
#include "hone/db/store_test_support.h"

namespace hone::db {
namespace {

std::unique_ptr<Store> open(const std::string& path, const StoreOptions& options = {}) {
  auto store = open_store(path, options);
  EXPECT_TRUE(store.ok()) << store.status().message();
  return store.ok() ? *std::move(store) : nullptr;
}

TEST(store, gives_back_every_field) {
  const TestFolder folder;
  const auto store = open(folder.file("a.db"));
  trial::Record r = sample_record(0x8000000000000001ULL, 1e-3);
  r.steps = std::string("quote ' and \0 zero and \xc3\xa4", 25);
  use_algorithm(r, "winograd_4");
  ASSERT_TRUE(store->add(std::vector{r}).ok());
  const auto all = store->query({.with_task_text = true});
  ASSERT_TRUE(all.ok()) << all.status().message();
  ASSERT_EQ(all->size(), 1U);
  const trial::Record& back = all->front();
  EXPECT_GT(back.id, 0);
  EXPECT_EQ(back.task, r.task);
  EXPECT_EQ(back.kernel_class, r.kernel_class);
  EXPECT_EQ(back.task_text, r.task_text);
  EXPECT_EQ(back.device, r.device);
  EXPECT_EQ(back.version, r.version);
  EXPECT_EQ(back.algorithm, r.algorithm);
  EXPECT_EQ(back.steps, r.steps);
  EXPECT_EQ(back.accuracy, r.accuracy);
  EXPECT_EQ(back.decisions, r.decisions);
  EXPECT_EQ(back.outcome, r.outcome);
  EXPECT_EQ(back.times, r.times);
  EXPECT_EQ(back.centre, r.centre);
  EXPECT_EQ(back.low, r.low);
  EXPECT_EQ(back.high, r.high);
  EXPECT_EQ(back.threads, r.threads);
  EXPECT_EQ(back.seed, r.seed);
  EXPECT_EQ(back.verified, r.verified);
  EXPECT_EQ(back.unix_time, r.unix_time);
  EXPECT_EQ(back.host_load, r.host_load);
  EXPECT_EQ(back.others, r.others);
  EXPECT_EQ(back.steal, r.steal);
  EXPECT_EQ(back.drift, r.drift);
  EXPECT_EQ(back.crowned, r.crowned);
  EXPECT_EQ(back.duel, r.duel);
  EXPECT_EQ(back.model, r.model);
  ASSERT_TRUE(back.bounds.has_value());
  EXPECT_EQ(back.bounds->scores.memory, r.bounds->scores.memory);
  EXPECT_EQ(back.bounds->scores.core, r.bounds->scores.core);
  EXPECT_EQ(back.bounds->source, r.bounds->source);
  EXPECT_FALSE(back.code.has_value());
  r.code = sample_code();
  ASSERT_TRUE(store->add(std::vector{r}).ok());
  EXPECT_EQ(store->query({.after_id = back.id})->front().code, r.code);
  r.bounds.reset();
  ASSERT_TRUE(store->add(std::vector{r}).ok());
  EXPECT_FALSE(store->query({.after_id = back.id})->back().bounds.has_value());
}

TEST(store, best_are_the_fastest_verified_of_task_device_and_threads) {
  const TestFolder folder;
  const auto store = open(folder.file("a.db"));
  std::vector<trial::Record> records = {sample_record(1, 3e-3), sample_record(1, 1e-3),
                                        sample_record(1, 2e-3), sample_record(1, 1e-4, false),
                                        sample_record(2, 1e-5), sample_record(1, 1e-5),
                                        sample_record(1, 1e-5), sample_record(1, 5e-4)};
  records[5].device = "other";
  records[6].threads = 1;
  records[7].version = "2";
  use_algorithm(records[7], "winograd");
  ASSERT_TRUE(store->add(records).ok());
  const auto best = store->best(best_of(1, 3));
  ASSERT_TRUE(best.ok()) << best.status().message();
  ASSERT_EQ(best->size(), 3U);
  EXPECT_EQ((*best)[0].times[0], 5e-4);
  EXPECT_EQ((*best)[1].times[0], 1e-3);
  EXPECT_EQ((*best)[2].times[0], 2e-3);
  BestQuery version1 = best_of(1);
  version1.version = "1";
  EXPECT_EQ(store->best(version1)->front().times[0], 1e-3);
  BestQuery winograd = best_of(1);
  winograd.algorithm = "winograd";
  EXPECT_EQ(store->best(winograd)->front().times[0], 5e-4);
  EXPECT_TRUE(store->best(best_of(99))->empty());
}

TEST(store, schedules_with_constants_of_16_bits_are_for_those_who_ask) {
  const TestFolder folder;
  const auto store = open(folder.file("a.db"));
  std::vector<trial::Record> records = {sample_record(1, 3e-3), sample_record(1, 1e-3),
                                        sample_record(2, 1e-3), sample_record(3, 1e-3)};
  use_algorithm(records[1], "direct_bf16");
  use_algorithm(records[2], "winograd_4_bf16");
  ASSERT_TRUE(store->add(records).ok());
  EXPECT_EQ(store->best(best_of(1))->front().algorithm, records[0].algorithm);
  EXPECT_TRUE(store->best(best_of(2))->empty());
  BestQuery any = best_of(1);
  any.accuracy = trial::Accuracy::kFast;
  EXPECT_EQ(store->best(any)->front().algorithm, "direct_bf16");
  const auto fastest = store->query({.fastest_only = true});
  ASSERT_EQ(fastest->size(), 2U);
  EXPECT_EQ((*fastest)[0].times[0], 3e-3);
  EXPECT_EQ((*fastest)[1].task, records[3].task);
}

TEST(store, who_wants_the_models_own_sums_gets_them_however_the_data_lie) {
  const TestFolder folder;
  const auto store = open(folder.file("a.db"));
  std::vector<trial::Record> records = {sample_record(1, 3e-3), sample_record(1, 2e-3),
                                        sample_record(1, 1e-3)};
  use_algorithm(records[1], "im2col");
  use_algorithm(records[2], "winograd_4");
  ASSERT_TRUE(store->add(records).ok());
  EXPECT_EQ(store->best(best_of(1))->front().algorithm, "winograd_4");
  BestQuery strict = best_of(1);
  strict.accuracy = trial::Accuracy::kStrict;
  EXPECT_EQ(store->best(strict)->front().algorithm, "im2col");
  for (const trial::Record& record : records)
    EXPECT_EQ(strict.takes(record), record.algorithm != "winograd_4");
}

TEST(store, an_accuracy_is_never_served_what_needs_a_less_strict_one) {
  const TestFolder folder;
  const auto store = open(folder.file("a.db"));
  Rng rng(11);
  std::vector<trial::Record> records;
  for (int i = 0; i < 300; ++i) {
    const char* const algorithms[] = {"direct", "im2col", "winograd_4", "direct_bf16",
                                      "winograd_4_bf16"};
    records.push_back(sample_record(static_cast<uint64_t>(rng.below(3)), 1e-3 * (1 + rng.below(20)),
                                    rng.chance(0.8)));
    use_algorithm(records.back(), algorithms[rng.below(5)]);
  }
  ASSERT_TRUE(store->add(records).ok());
  for (const trial::Accuracy accuracy :
       {trial::Accuracy::kStrict, trial::Accuracy::kDefault, trial::Accuracy::kFast}) {
    for (uint64_t task = 0; task < 3; ++task) {
      BestQuery query = best_of(task, 40);
      query.accuracy = accuracy;
      std::vector<double> expected;
      for (const trial::Record& record : records) {
        if (record.task == task && record.verified && query.takes(record))
          expected.push_back(record.centre);
      }
      std::sort(expected.begin(), expected.end());
      expected.resize(std::min<size_t>(expected.size(), 40));
      std::vector<double> found;
      const auto best = store->best(query);
      ASSERT_TRUE(best.ok()) << best.status().message();
      for (const trial::Record& record : *best) {
        EXPECT_LE(record.accuracy, accuracy) << record.steps;
        EXPECT_EQ(record.accuracy, trial::accuracy_of(record.steps));
        found.push_back(record.centre);
      }
      EXPECT_EQ(found, expected);
    }
  }
}

TEST(store, a_record_that_claims_another_accuracy_than_that_of_its_steps_is_refused) {
  const TestFolder folder;
  const auto store = open(folder.file("a.db"));
  trial::Record forged = sample_record(1, 1e-3);
  use_algorithm(forged, "winograd_4");
  forged.accuracy = trial::Accuracy::kStrict;
  const auto added = store->add(std::vector{forged});
  ASSERT_FALSE(added.ok());
  EXPECT_EQ(added.status().message(),
            "a record has the accuracy strict, but its steps need default");
}

TEST(store, a_trial_becomes_a_best_only_by_verification) {
  const TestFolder folder;
  const auto store = open(folder.file("a.db"));
  const auto ids =
      store->add(std::vector{sample_record(1, 1e-3, false), sample_record(1, 2e-3, false)});
  ASSERT_TRUE(ids.ok());
  EXPECT_TRUE(store->best(best_of(1))->empty());
  ASSERT_TRUE(store->set_verified((*ids)[1], trial::Outcome::kOk, "").ok());
  EXPECT_EQ(store->best(best_of(1))->front().id, (*ids)[1]);
  ASSERT_TRUE(store->set_verified((*ids)[0], trial::Outcome::kWrongAnswer, "off by 1").ok());
  EXPECT_EQ(store->best(best_of(1, 9))->size(), 1U);
  const auto wrong = store->query({.outcome = trial::Outcome::kWrongAnswer});
  ASSERT_EQ(wrong->size(), 1U);
  EXPECT_EQ(wrong->front().message, "off by 1");
  EXPECT_FALSE(store->set_verified((*ids)[0], trial::Outcome::kOk, "").ok())
      << "a wrong trial was verified";
  ASSERT_TRUE(store->set_verified((*ids)[1], trial::Outcome::kCrash, "killed").ok());
  EXPECT_TRUE(store->best(best_of(1, 9))->empty());
  const auto failed = store->query({.failed_only = true});
  ASSERT_EQ(failed->size(), 2U);
  EXPECT_EQ((*failed)[1].outcome, trial::Outcome::kCrash);
  EXPECT_EQ((*failed)[1].message, "killed");
  EXPECT_FALSE(store->set_verified(12345, trial::Outcome::kOk, "").ok());
}

TEST(store, a_batch_with_a_bad_record_stores_nothing) {
  const TestFolder folder;
  const auto store = open(folder.file("a.db"));
  const auto refused = [&](auto change) {
    trial::Record bad = sample_record(1, 1e-3);
    change(bad);
    return !store->add(std::vector{sample_record(1, 1e-3), bad}).ok();
  };
  EXPECT_TRUE(refused([](trial::Record& r) { r.times.clear(); }));
  EXPECT_TRUE(refused([](trial::Record& r) { r.times[0] = NAN; }));
  EXPECT_TRUE(refused([](trial::Record& r) { r.centre = 0; }));
  EXPECT_TRUE(refused([](trial::Record& r) { r.high = INFINITY; }));
  EXPECT_TRUE(refused([](trial::Record& r) { r.threads = 0; }));
  EXPECT_TRUE(refused([](trial::Record& r) { r.device.clear(); }));
  EXPECT_TRUE(refused([](trial::Record& r) { r.outcome = trial::Outcome::kCrash; }));
  EXPECT_TRUE(refused([](trial::Record& r) {
    r.outcome = trial::Outcome::kCrash, r.verified = false;
  })) << "crowned";
  EXPECT_TRUE(refused([](trial::Record& r) { r.drift = 0; }));
  EXPECT_TRUE(refused([](trial::Record& r) { r.duel.pop_back(); }));
  EXPECT_TRUE(refused([](trial::Record& r) { r.duel[1] = -1; }));
  EXPECT_TRUE(refused([](trial::Record& r) { r.steal = NAN; }));
  EXPECT_TRUE(refused([](trial::Record& r) { r.bounds->scores.memory = -0.1; }));
  EXPECT_TRUE(refused([](trial::Record& r) { r.bounds->scores = {0.625, 0.5}; }));
  EXPECT_TRUE(refused([](trial::Record& r) { r.bounds->scores.core = NAN; }));
  EXPECT_TRUE(refused([](trial::Record& r) { r.bounds->source.clear(); }));
  EXPECT_TRUE(refused([](trial::Record& r) { r.code = CodeFigures(); })) << "without registers";
  EXPECT_TRUE(refused([](trial::Record& r) { r.code = sample_code(), r.code->barriers = -1; }));
  EXPECT_TRUE(store->query({})->empty());
}

TEST(store, filters_combine) {
  const TestFolder folder;
  const auto store = open(folder.file("a.db"));
  std::vector<trial::Record> records = {sample_record(1, 1e-3), sample_record(2, 1e-3, false),
                                        sample_record(3, 1e-3)};
  records[1].model = "vgg16", records[1].kernel_class = "gemm";
  records[2].outcome = trial::Outcome::kTimeout, records[2].times.clear(),
  records[2].verified = records[2].crowned = false;
  ASSERT_TRUE(store->add(records).ok());
  EXPECT_EQ(store->query({})->size(), 3U);
  EXPECT_EQ(store->query({.task = 2})->size(), 1U);
  EXPECT_EQ(store->query({.kernel_class = "gemm", .model = "vgg16"})->size(), 1U);
  EXPECT_EQ(store->query({.kernel_class = "gemm", .model = "resnet18"})->size(), 0U);
  EXPECT_EQ(store->query({.device = "avx512-x-2c", .version = "1", .threads = 2})->size(), 3U);
  EXPECT_EQ(store->query({.outcome = trial::Outcome::kTimeout})->front().task, 3U);
  EXPECT_EQ(store->query({.verified_only = true})->front().task, 1U);
  EXPECT_EQ(store->query({.after_id = 1, .limit = 1})->front().task, 2U);
  const auto newest = store->query({.limit = 2, .newest_first = true});
  ASSERT_EQ(newest->size(), 2U);
  EXPECT_EQ(newest->front().task, 3U);
  EXPECT_EQ(newest->back().task, 2U);
}

TEST(store, the_fastest_of_each_task_device_and_threads_are_found_at_once) {
  const TestFolder folder;
  const auto store = open(folder.file("a.db"));
  EXPECT_TRUE(store->query({.fastest_only = true})->empty());
  std::vector<trial::Record> records = {sample_record(1, 3e-3),        sample_record(1, 1e-3),
                                        sample_record(2, 1e-4, false), sample_record(2, 2e-4),
                                        sample_record(1, 5e-3),        sample_record(1, 4e-3),
                                        sample_record(3, 1e-5, false)};
  records[4].device = "other";
  records[5].threads = 1, records[5].model = "alexnet";
  ASSERT_TRUE(store->add(records).ok());
  const auto ids = [&](Filter filter) {
    filter.fastest_only = true;
    const auto found = store->query(filter);
    EXPECT_TRUE(found.ok()) << found.status().message();
    std::vector<int64_t> list;
    for (const trial::Record& record : *found) list.push_back(record.id);
    return list;
  };
  EXPECT_EQ(ids({}), (std::vector<int64_t>{2, 4, 5, 6}));
  EXPECT_EQ(ids({.task = 1}), (std::vector<int64_t>{2, 5, 6}));
  EXPECT_EQ(ids({.model = "alexnet"}), (std::vector<int64_t>{6}));
  EXPECT_EQ(ids({.after_id = 2, .limit = 2}), (std::vector<int64_t>{4, 5}));
}

TEST(store, best_takes_less_than_a_millisecond_among_many) {
  const TestFolder folder;
  const auto store = open(folder.file("a.db"));
  Rng rng(7);
  std::vector<trial::Record> records;
  for (int i = 0; i < 20'000; ++i) {
    records.push_back(sample_record(static_cast<uint64_t>(rng.below(4)), 1e-4 * (1 + rng.uniform()),
                                    rng.chance(0.5)));
  }
  // All that --accuracy strict allows is slower than the rest.
  for (int i = 0; i < 20'000; ++i) {
    records.push_back(sample_record(4, 1e-4 * (i < 20 ? 2 : 1 + rng.uniform())));
    use_algorithm(records.back(), i < 20 ? "direct" : "winograd_4");
  }
  ASSERT_TRUE(store->add(records).ok());
  for (const trial::Accuracy accuracy : {trial::Accuracy::kDefault, trial::Accuracy::kStrict}) {
    double least = 1;
    for (int i = 0; i < 20; ++i) {
      BestQuery query = best_of(static_cast<uint64_t>(i % 5), 10);
      if (accuracy == trial::Accuracy::kStrict) query.task = 4;
      query.accuracy = accuracy;
      const auto start = std::chrono::steady_clock::now();
      const auto best = store->best(query);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      ASSERT_EQ(best->size(), 10U);
      EXPECT_LE(best->back().accuracy, accuracy);
      least = std::min(least, took.count());
    }
    EXPECT_LT(least, 1e-3) << trial::accuracy_name(accuracy);
  }
}

TEST(store, survives_being_closed_and_opened) {
  const TestFolder folder;
  const std::string path = folder.file("name with % and ?.db");
  for (int i = 1; i <= 3; ++i) {
    const auto store = open(path);
    ASSERT_TRUE(store->add(std::vector{sample_record(1, 1e-3)}).ok());
    EXPECT_EQ(store->query({})->size(), static_cast<size_t>(i));
  }
  const auto reader = open(path, {.read_only = true});
  EXPECT_EQ(reader->query({})->size(), 3U);
}

// A trial of a part of a task says nothing of the task.
TEST(store, parts_of_tasks_are_found_only_where_they_are_asked_for) {
  const TestFolder folder;
  const auto store = open(folder.file("a.db"));
  ASSERT_TRUE(store->add(std::vector{sample_part(1, 1e-6), sample_record(1, 2e-3)}).ok());
  EXPECT_EQ(store->best(best_of(1, 9))->size(), 1U);
  EXPECT_EQ(store->query({.fastest_only = true})->size(), 1U);
  const auto whole = store->query({});
  ASSERT_EQ(whole->size(), 1U);
  EXPECT_EQ(whole->front().part, "");
  const auto parts = store->query({.task = 1, .parts = Filter::Parts::kParts});
  ASSERT_EQ(parts->size(), 1U);
  EXPECT_EQ(parts->front().part, "2[0]<64");
  EXPECT_EQ(store->query({.parts = Filter::Parts::kAll})->size(), 2U);
  trial::Record verified = sample_part(1, 1e-6);
  verified.verified = true;
  EXPECT_EQ(store->add(std::vector{verified}).status().message(),
            "a record of a part of its task is verified or crowned, expected neither");
}

// Writes a database as the first release did.
void write_version_1(const std::string& path) {
  const std::string sql =
      std::string(kMigrations[0]) +
      "INSERT INTO task VALUES (1, '0000000000000001', 'gemm', 'task text');"
      "INSERT INTO device VALUES (1, 'avx512-x-2c');"
      "INSERT INTO trial VALUES (5, 1, 1, 2, '1', 'direct', 'split i 8', '', 'ok', '', "
      "x'fca9f1d24d62503f', 1e-3, 1e-3, 1e-3, 1, '0000000000000007', 1700000000, 0.5, 'vgg16');" +
      fmt::format("PRAGMA application_id = {}; PRAGMA user_version = 1", kApplicationId);
  run_sql(path, sql);
}

// A database of a later version, as the migrations to it leave that one.
void write_version(const std::string& path, int version) {
  write_version_1(path);
  for (int v = 1; v < version; ++v) run_sql(path, kMigrations[v]);
  run_sql(path, fmt::format("PRAGMA user_version = {}", version));
}

TEST(format, version_1_is_brought_up_to_date) {
  const TestFolder folder;
  const std::string path = folder.file("a.db");
  write_version_1(path);
  EXPECT_TRUE(open_store(path, {.read_only = true}).ok());
  for (int round = 0; round < 2; ++round) {
    const auto store = open(path);
    const auto old = store->best(best_of(1));
    ASSERT_TRUE(old.ok()) << old.status().message();
    ASSERT_EQ(old->size(), 1U);
    EXPECT_EQ(old->front().id, 5);
    EXPECT_EQ(old->front().times, std::vector{1e-3});
    EXPECT_EQ(old->front().model, "vgg16");
    EXPECT_EQ(old->front().drift, 1);
    EXPECT_FALSE(old->front().crowned);
    EXPECT_TRUE(old->front().duel.empty());
    ASSERT_TRUE(store->add(std::vector{sample_record(1, 2e-3)}).ok());
  }
  EXPECT_EQ(open(path, {.read_only = true})->query({})->size(), 3U);
}

// These are databases of the releases after that one, from the first that stored drift.
TEST(format, versions_2_and_3_are_read_as_they_are_and_brought_up_to_date) {
  for (const int version : {2, 3}) {
    const TestFolder folder;
    const std::string path = folder.file("a.db");
    write_version(path, version);
    run_sql(path, "UPDATE trial SET drift = 1.5, crowned = 1");
    {
      const auto reader = open(path, {.read_only = true});
      const auto best = reader->best(best_of(1));
      ASSERT_TRUE(best.ok()) << best.status().message();
      EXPECT_EQ(best->front().drift, 1.5);
      EXPECT_FALSE(best->front().bounds.has_value());
    }
    const auto store = open(path);
    ASSERT_TRUE(store->add(std::vector{sample_record(1, 2e-3)}).ok());
    const auto all = store->query({});
    ASSERT_EQ(all->size(), 2U);
    EXPECT_TRUE((*all)[0].crowned);
    EXPECT_FALSE((*all)[0].bounds.has_value());
    EXPECT_EQ((*all)[1].bounds->source, "amd_zen4");
  }
}

// This is a database of the last release that stored no figures of code.
TEST(format, version_8_has_records_without_figures_of_code) {
  const TestFolder folder;
  const std::string path = folder.file("a.db");
  write_version(path, 8);
  const auto reader = open(path, {.read_only = true});
  ASSERT_EQ(reader->query({})->size(), 1U);
  EXPECT_FALSE(reader->query({})->front().code.has_value());
  const auto store = open(path);
  trial::Record of_gpu = sample_record(1, 2e-3);
  of_gpu.code = sample_code();
  ASSERT_TRUE(store->add(std::vector{of_gpu}).ok());
  const auto all = store->query({});
  ASSERT_EQ(all->size(), 2U);
  EXPECT_FALSE((*all)[0].code.has_value());
  EXPECT_EQ((*all)[1].code, of_gpu.code);
}

// This is a database of the last release that stored no accuracy.
TEST(format, version_5_gets_the_accuracy_of_the_steps) {
  const TestFolder folder;
  const std::string path = folder.file("a.db");
  write_version(path, 5);
  const char* const steps[] = {"split(winograd, i, [4])", "inline(b)\nwinograd(conv2d, 4)\nx",
                               "strassen(gemm)", "winograd(conv2d, 2)\nnarrow(conv2d.u, bf16)"};
  for (const char* text : steps) {
    run_sql(path,
            fmt::format("INSERT INTO trial (task, device, threads, version, algorithm, steps, "
                        "decisions, outcome, message, times, centre, low, high, verified, "
                        "seed, unix_time, host_load, model) SELECT task, device, threads, "
                        "version, algorithm, '{}', decisions, outcome, message, times, centre "
                        "/ 2, low, high, verified, seed, unix_time, host_load, model FROM "
                        "trial WHERE id = 5",
                        text));
  }
  for (const bool read_only : {true, false}) {
    const auto store = open(path, {.read_only = read_only});
    const auto all = store->query({});
    ASSERT_TRUE(all.ok()) << all.status().message();
    ASSERT_EQ(all->size(), 5U);
    for (const trial::Record& record : *all)
      EXPECT_EQ(record.accuracy, trial::accuracy_of(record.steps));
    for (const auto& [accuracy, count] : {std::pair{trial::Accuracy::kStrict, 2U},
                                          {trial::Accuracy::kDefault, 4U},
                                          {trial::Accuracy::kFast, 5U}}) {
      BestQuery query = best_of(1, 9);
      query.accuracy = accuracy;
      const auto best = store->best(query);
      ASSERT_TRUE(best.ok()) << best.status().message();
      EXPECT_EQ(best->size(), count);
    }
    const auto fastest = store->query({.fastest_only = true});
    ASSERT_EQ(fastest->size(), 1U);
    EXPECT_EQ(fastest->front().steps, steps[0]);
  }
}

// This is a database of the last release whose trials all computed the whole task.
TEST(format, version_11_has_trials_of_whole_tasks) {
  const TestFolder folder;
  const std::string path = folder.file("a.db");
  write_version(path, 11);
  {
    const auto reader = open(path, {.read_only = true});
    EXPECT_EQ(reader->query({})->size(), 1U);
    EXPECT_TRUE(reader->query({.parts = Filter::Parts::kParts})->empty());
  }
  const auto store = open(path);
  ASSERT_EQ(store->query({})->size(), 1U);
  EXPECT_EQ(store->query({})->front().part, "");
  ASSERT_TRUE(store->add(std::vector{sample_part(1, 1e-6)}).ok());
  EXPECT_EQ(store->query({.parts = Filter::Parts::kAll})->size(), 2U);
}

TEST(registry, default_path_is_made_where_xdg_says) {
  const TestFolder folder;
  const std::string old =
      std::getenv("XDG_DATA_HOME") == nullptr ? "" : std::getenv("XDG_DATA_HOME");
  setenv("XDG_DATA_HOME", folder.file("data").c_str(), 1);
  EXPECT_EQ(*default_path(), folder.file("data/hone/hone.db"));
  EXPECT_TRUE(open_store("").ok());
  EXPECT_TRUE(std::filesystem::exists(folder.file("data/hone/hone.db")));
  setenv("XDG_DATA_HOME", "relative", 1);
  EXPECT_TRUE(default_path()->ends_with("/.local/share/hone/hone.db"));
  old.empty() ? unsetenv("XDG_DATA_HOME") : setenv("XDG_DATA_HOME", old.c_str(), 1);
}

TEST(registry, names_for_people_show_no_password) {
  EXPECT_EQ(store_name("trials.db"), "trials.db");
  EXPECT_EQ(store_name("postgres://me:se?c@ret@host:5/db"), "postgres://host:5/db");
  EXPECT_EQ(store_name("postgres://host:5/db?password=x"), "postgres://host:5/db");
  EXPECT_EQ(store_name("postgresql://host/db"), "postgresql://host/db");
}

TEST(registry, a_server_that_does_not_answer_is_named) {
  for (const char* where : {"postgres://localhost:1/none", "postgresql://localhost:1/none"}) {
    const auto store = open_store(where);
    ASSERT_FALSE(store.ok());
    const std::string message(store.status().message());
    EXPECT_TRUE(message.starts_with("cannot connect to database localhost:1/none: ") ||
                message.find("built without PostgreSQL") != std::string::npos)
        << message;
    EXPECT_FALSE(store_path(where, {}).ok()) << "a server is no file";
  }
}

TEST(format, the_document_shows_the_schema) {
  std::ifstream file(HONE_SOURCE_DIR "/docs/formats/db_format.md");
  std::stringstream text;
  text << file.rdbuf();
  for (const char* sql : kMigrations) EXPECT_NE(text.str().find(sql), std::string::npos) << sql;
  for (const char* sql : kPostgresMigrations)
    EXPECT_NE(text.str().find(sql), std::string::npos) << sql;
  for (const std::string_view name : trial::kOutcomeNames) {
    EXPECT_NE(text.str().find("`" + std::string(name) + "`"), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace hone::db
