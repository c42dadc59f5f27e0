#include "hone/session/network_choices.h"

#include <gtest/gtest.h>

#include "hone/base/file.h"
#include "hone/db/registry.h"
#include "hone/graph/test_model.h"
#include "hone/session/schedule_sources.h"

namespace hone {
namespace {

// A product and, if `twice`, another one of the same shape behind it.
graph::Graph network(bool twice) {
  Rng rng(5);
  graph::TestModel model;
  model.input("x", {48, 48});
  model.constant("w0", graph::random_tensor({48, 48}, rng));
  model.constant("w1", graph::random_tensor({48, 48}, rng));
  model.node("MatMul", {"x", "w0"}, {"a"}).node("Relu", {"a"}, {twice ? "b" : "y"});
  if (twice) model.node("MatMul", {"b", "w1"}, {"c"}).node("Relu", {"c"}, {"y"});
  return model.output("y").graph();
}

struct Fixture {
  TempDir folder = std::move(TempDir::create()).value();
  std::unique_ptr<db::Store> store = db::open_store(folder.file("hone.db")).value();
  std::vector<std::unique_ptr<Session>> sessions;
  CompileOptions options;
  ModelTasks model;
  schedule::Steps fastest, other;
  Fixture() {
    options.records.db = folder.file("hone.db");
    options.records.use_shipped = false;
    options.target.threads = 1;
    model = tasks(true);
    const space::Space space = space::Space::create(model.dag(0), model.target()).value();
    fastest = space.steps(space.default_point());
    add(fastest, 1e-3);
    Rng rng(1);
    do {
      other = space.steps(space.sample(rng));
    } while (other == fastest ||
             trial::accuracy_of(schedule::to_string(other)) != trial::Accuracy::kStrict);
    add(other, 1.1e-3);
  }
  ModelTasks tasks(bool twice, int threads = 1) {
    options.target.threads = threads;
    return make_tasks(open("default"), network(twice), options).value();
  }
  Session& open(const std::string& accuracy) {
    options.target.accuracy = accuracy;
    return *sessions.emplace_back(Session::open(options, {.opened = store.get()}).value());
  }
  void add(const schedule::Steps& steps, double seconds) {
    trial::Record r;
    r.task = model.tasks.groups[0].key;
    r.kernel_class = model.summaries[0].kernel_class;
    r.task_text = compute::describe(model.dag(0));
    r.device = model.device();
    r.version = "1";
    r.algorithm = "direct";
    r.steps = schedule::to_string(steps);
    r.accuracy = trial::accuracy_of(r.steps);
    r.times = {seconds}, r.centre = r.low = r.high = seconds;
    r.verified = true;
    r.model = "net";
    ASSERT_TRUE(store->add(std::vector{r}).ok());
  }
  // That the network is faster with these.
  void remember(const schedule::Steps& steps) {
    const std::vector<schedule::Steps> schedules(1, steps);
    const Status status = remember_choices(model, schedules, *store);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  // What a build of the network takes for its first task.
  ChosenSchedule known(const ModelTasks& built, const std::string& algorithm = "") {
    const Result<ScheduleSources> sources = load_sources(built, options);
    EXPECT_TRUE(sources.ok()) << sources.status().message();
    const auto found = stored_schedule(built, 0, *sources, algorithm);
    EXPECT_TRUE(found.ok() && found->has_value());
    return **found;
  }
};

TEST(network_choices, what_is_faster_inside_a_network_is_taken_there) {
  Fixture f;
  EXPECT_EQ(f.known(f.model).steps, f.fastest);
  f.remember(f.other);
  const ChosenSchedule known = f.known(f.model);
  EXPECT_EQ(known.steps, f.other);
  EXPECT_EQ(known.source, "stored");
  EXPECT_EQ(known.seconds, 1.1e-3);
  EXPECT_EQ(f.known(f.model, "direct").steps, f.fastest) << "who wants the best of an algorithm";
  EXPECT_EQ(f.known(f.tasks(false)).steps, f.fastest) << "another network";
}

TEST(network_choices, are_for_one_number_of_threads_and_accuracy) {
  Fixture f;
  f.remember(f.other);
  ModelTasks two = f.tasks(true, 2);
  EXPECT_TRUE(stored_choices(two, *f.store)->empty());
  EXPECT_EQ(stored_choices(f.model, *f.store)->size(), 1U);
  Session* const usual = f.model.session;
  f.model.session = &f.open("strict");
  EXPECT_TRUE(stored_choices(f.model, *f.store)->empty());
  f.remember(f.fastest);
  f.model.session = usual;
  EXPECT_EQ(stored_choices(f.model, *f.store)->size(), 1U) << "of its own accuracy";
  f.model.excluded = f.model.own;
  EXPECT_TRUE(stored_choices(f.model, *f.store)->empty()) << "an excluded model";
}

TEST(network_choices, a_new_fastest_schedule_ends_the_choice) {
  Fixture f;
  f.remember(f.other);
  schedule::Steps faster;  // none at all
  f.add(faster, 0.9e-3);
  EXPECT_EQ(f.known(f.model).steps, faster);
  f.remember(f.other);
  EXPECT_EQ(f.known(f.model).steps, f.other) << "compared anew";
  f.remember(faster);
  EXPECT_EQ(f.known(f.model).steps, faster);
}

TEST(network_choices, what_was_never_measured_is_not_remembered_but_ends_what_was) {
  Fixture f;
  f.remember(f.other);
  f.remember(schedule::Steps());
  EXPECT_TRUE(stored_choices(f.model, *f.store)->empty());
}

}  // namespace
}  // namespace hone
