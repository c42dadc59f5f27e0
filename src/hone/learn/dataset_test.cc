#include "hone/learn/dataset.h"

#include <gtest/gtest.h>

#include "hone/base/rng.h"
#include "hone/compute/dag_testing.h"
#include "hone/compute/dag_text.h"
#include "hone/cost/registry.h"
#include "hone/db/forwarding_store_testing.h"
#include "hone/db/registry.h"
#include "hone/learn/evaluate.h"
#include "hone/learn/net_rows.h"

namespace hone::learn {

namespace net = cost::net;
namespace {

const compute::Dag& shared_task() {
  static const compute::Dag kDag = compute::testing::gemm(32, 64, 32);
  return kDag;
}
const compute::Dag& own_task() {
  static const compute::Dag kDag = compute::testing::gemm(64, 64, 64);
  return kDag;
}

class Database {
 public:
  db::Store& store() { return *store_; }

  // That the n-th schedule of a task took so long on "device", with one thread, for network "a".
  trial::Record record(const compute::Dag& dag, int schedule, double seconds) {
    const auto space = space::Space::create(dag, target_);
    Rng rng(1);
    space::Point point = space->default_point();
    for (int i = 0; i < schedule; ++i) point = space->mutate(point, rng);
    trial::Record record;
    record.task = compute::task_key(dag);
    record.kernel_class = "gemm";
    record.task_text = compute::to_text(dag);
    record.device = "device";
    record.version = "2";
    record.steps = schedule::to_string(space->steps(point));
    record.accuracy = trial::accuracy_of(record.steps);
    record.times = {seconds};
    record.centre = record.low = record.high = seconds;
    record.model = "a";
    return record;
  }
  void add(const trial::Record& record) {
    const auto added = store_->add({&record, 1});
    ASSERT_TRUE(added.ok()) << added.status().message();
  }
  void add_pair(const compute::Dag& dag, const std::string& network, const std::string& device,
                int threads) {
    for (const int schedule : {0, 1}) {
      trial::Record one = record(dag, schedule, 1.0 + schedule);
      one.model = network, one.device = device, one.threads = threads;
      add(one);
    }
  }

 private:
  const target::Target target_;
  std::unique_ptr<db::Store> store_ = std::move(db::open_store(":memory:")).value();
};

// Loading drops what cannot be right.
TEST(dataset, drops_outliers_and_other_versions) {
  Database database;
  for (const double seconds : {1.0, 1.1, 9.0})
    database.add(database.record(shared_task(), 0, seconds));
  database.add(database.record(shared_task(), 1, 2.0));
  trial::Record old = database.record(shared_task(), 1, 7.0);
  old.version = "1";
  database.add(old);
  const Dataset dataset = load_dataset(database.store(), "device", 1, "2").value();
  EXPECT_EQ(dataset.outliers, 1);
  EXPECT_EQ(dataset.other_versions, (std::map<std::string, int64_t>{{"1", 1}}));
  ASSERT_EQ(dataset.size(), 2);
  EXPECT_LE(dataset.tasks[0].trials[0].seconds, 1.1);
}

TEST(dataset, of_one_number_of_threads_counts_what_is_left_out_of_those) {
  Database database;
  for (const int threads : {1, 2}) database.add_pair(shared_task(), "a", "device", threads);
  trial::Record odd = database.record(shared_task(), 0, 9.0);
  odd.threads = 2;
  database.add(odd);
  odd.version = "1";
  database.add(odd);
  const Dataset one = load_dataset(database.store(), "device", 2, "2", 1).value();
  ASSERT_EQ(one.tasks.size(), 1U);
  EXPECT_EQ(one.tasks[0].threads, 1);
  EXPECT_EQ(one.outliers, 0);
  EXPECT_TRUE(one.other_versions.empty());
  const Dataset two = load_dataset(database.store(), "device", 2, "2", 2).value();
  EXPECT_EQ(two.outliers, 1);
  EXPECT_EQ(two.other_versions.at("1"), 1);
  EXPECT_EQ(load_dataset(database.store(), "device", 2, "2")->tasks.size(), 2U);
}

// "b" to "d" have the shared task, too, as records tell that are not of one thread on "device".
Dataset shared_by_networks() {
  Database database;
  database.add_pair(own_task(), "a", "device", 1);
  database.add_pair(shared_task(), "a", "device", 1);
  database.add_pair(shared_task(), "b", "device", 2);
  database.add_pair(shared_task(), "c", "elsewhere", 1);
  trial::Record failed = database.record(shared_task(), 0, 1);
  failed.model = "d", failed.device = "elsewhere", failed.version = "1";
  failed.outcome = trial::Outcome::kCrash;
  failed.times.clear();
  failed.centre = failed.low = failed.high = 0;
  database.add(failed);
  return load_dataset(database.store(), "device", 2, "2").value();
}

TEST(dataset, a_network_has_a_task_whatever_it_was_measured_with) {
  const std::set<uint64_t> own = {compute::task_key(own_task())},
                           shared = {compute::task_key(shared_task())};
  const Dataset dataset = shared_by_networks();
  ASSERT_EQ(dataset.tasks.size(), 3U);  // the shared one with one thread and with two
  EXPECT_EQ(dataset.models(), (std::set<std::string>{"a", "b", "c", "d"}));
  for (const char* name : {"b", "c", "d"}) {
    SCOPED_TRACE(name);
    EXPECT_EQ(dataset.keys_of({name}), shared);
    const Dataset rest = without_models(dataset, {name});
    EXPECT_EQ(rest.keys(), own);
    EXPECT_EQ(rest.device, "device");
    const Parts parts = split_models(dataset, {name});
    EXPECT_EQ(parts.train.keys(), own);
    EXPECT_EQ(parts.validation.keys(), shared);
    EXPECT_EQ(parts.validation.tasks.size(), 2U);
  }
  EXPECT_TRUE(without_models(dataset, {"a"}).tasks.empty());
  EXPECT_EQ(without_models(dataset, {"e"}).keys(), dataset.keys());
}

// Counts the queries that begin a pass over all records.
class CountingStore : public db::ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  Result<std::vector<trial::Record>> query(const db::Filter& filter) override {
    passes += !filter.device && filter.after_id == 0;
    return ForwardingStore::query(filter);
  }
  int passes = 0;
};

TEST(dataset, what_networks_have_is_read_once_for_all_devices) {
  Database database;
  database.add_pair(own_task(), "a", "device", 1);
  database.add_pair(shared_task(), "a", "device", 1);
  database.add_pair(shared_task(), "b", "elsewhere", 2);
  CountingStore store(database.store());
  const StoreContents contents = read_contents(store).value();
  EXPECT_EQ(contents.records, 6);
  EXPECT_EQ(contents.versions, (std::set<std::string>{"2"}));
  const std::set<std::string> devices = {"device", "elsewhere"}, both = {"a", "b"};
  ASSERT_EQ(contents.devices, devices);
  for (const std::string& device : contents.devices) {
    SCOPED_TRACE(device);
    const Dataset dataset = load_dataset(store, device, 2, "2", 0, &contents).value();
    EXPECT_EQ(dataset.models(), both);
    EXPECT_EQ(dataset.keys_of({"b"}), (std::set<uint64_t>{compute::task_key(shared_task())}));
    EXPECT_EQ(dataset.keys(), load_dataset(database.store(), device, 2, "2")->keys());
  }
  EXPECT_EQ(store.passes, 1);
}

TEST(dataset, each_network_is_judged_after_training_on_none_of_its_tasks) {
  std::vector<std::set<uint64_t>> trained;
  const auto train = [&](const Dataset& rest) {
    trained.push_back(rest.keys());
    return cost::make_model("analytic");
  };
  const Dataset dataset = shared_by_networks();
  // Two schedules are too few to judge by.
  EXPECT_FALSE(cross_evaluate(dataset, target::Target(), Split::kByModel, train).ok());
  const std::set<uint64_t> own = {compute::task_key(own_task())};
  EXPECT_EQ(trained, (std::vector<std::set<uint64_t>>{{}, own, own, own}));
}

// The parts of a task with different threads may name different networks.
TEST(dataset, no_part_of_a_task_that_a_network_has_is_left) {
  Dataset dataset = shared_by_networks();
  const uint64_t shared = compute::task_key(shared_task());
  for (TaskTrials& task : dataset.tasks)
    task.models = {task.key == shared && task.threads == 2 ? "b" : "a"};
  EXPECT_EQ(without_models(dataset, {"b"}).keys(),
            (std::set<uint64_t>{compute::task_key(own_task())}));
  EXPECT_EQ(split_models(dataset, {"b"}).validation.tasks.size(), 2U);
}

}  // namespace
}  // namespace hone::learn
