#include "hone/session/session.h"

#include <gtest/gtest.h>

#include "hone/base/file.h"
#include "hone/compute/dag_testing.h"
#include "hone/db/store_test_support.h"
#include "hone/graph/test_model.h"
#include "hone/session/model_tasks.h"

namespace hone {
namespace {

CompileOptions without_store() {
  CompileOptions options;
  options.records.use_db = false;
  return options;
}

TEST(Session, names_that_stand_for_nothing_are_errors) {
  CompileOptions options = without_store();
  EXPECT_TRUE(Session::open(options).ok());
  for (std::string* name : {&options.advanced.cost, &options.records.transfer,
                            &options.target.accuracy, &options.target.device}) {
    const std::string known = *name;
    *name = "guess";
    const Status status = Session::open(options).status();
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.message().find("guess"), std::string::npos) << status.message();
    *name = known;
  }
}

TEST(Session, a_gpu_has_no_threads_of_the_host_to_choose) {
  CompileOptions options = without_store();
  options.target.device = "opencl-generic";
  options.target.threads = 1;
  EXPECT_EQ(Session::open(options).value()->threads(), 1);
  options.target.threads = 4;
  const Status status = Session::open(options).status();
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_EQ(status.message(),
            "4 threads are wanted for opencl-generic, expected 0 or 1: one thread of the host is "
            "enough");
}

TEST(Session, a_search_is_guided_by_the_cost_model_unless_another_one_is_named) {
  CompileOptions options = without_store();
  options.advanced.cost = "gbdt";
  for (const char* same : {"", "gbdt"}) {
    const auto session = Session::open(options, {.guide = same}).value();
    EXPECT_EQ(session->guide(), session->cost());
    EXPECT_EQ(session->cost()->name(), "gbdt");
  }
  const auto session = Session::open(options, {.guide = "combined"}).value();
  EXPECT_NE(session->guide(), session->cost());
  EXPECT_EQ(session->guide()->name(), "combined");
  EXPECT_EQ(session->cost()->name(), "gbdt");
  const auto message = [&](const SessionOptions& more) {
    return Session::open(options, more).status().message();
  };
  EXPECT_NE(message({.guide = "guess"}).find("guess"), std::string::npos);
  EXPECT_NE(message({.adapt = "head"}).find("gbdt"), std::string::npos);  // trees do not adapt
}

TEST(Session, cost_models_are_refused_for_devices_that_they_do_not_know) {
  CompileOptions options = without_store();
  options.target.device = "opencl-generic";
  EXPECT_EQ(Session::open(options).value()->cost()->name(), "gpu");
  EXPECT_EQ(Session::open(options, {.guide = "combined"}).status().message(),
            "cost model 'combined' knows CPUs only, expected gpu or analytic for device "
            "opencl-generic");
  options.advanced.cost = "gbdt";
  EXPECT_FALSE(Session::open(options).ok());
  options = without_store();
  options.advanced.cost = "gpu";
  EXPECT_EQ(Session::open(options).status().message(),
            "cost model 'gpu' knows GPUs only, expected one of CPUs for device host");
}

TEST(Session, a_store_is_made_when_something_is_written_to_it) {
  const TempDir folder = TempDir::create().value();
  CompileOptions options;
  options.records.db = folder.file("hone.db");
  using Store = SessionOptions::Store;
  EXPECT_EQ(Session::open(options, {.store = Store::kNone}).value()->store(), nullptr);
  EXPECT_FALSE(Session::open(options, {.store = Store::kRead}).ok());
  const auto session = Session::open(options, {.store = Store::kWrite}).value();
  ASSERT_NE(session->store(), nullptr);
  EXPECT_FALSE(Session::open(options, {.store = Store::kRead}).ok()) << "nothing was written yet";
  ASSERT_TRUE(session->store()->add(std::vector{db::sample_record(1, 1e-3)}).ok());
  EXPECT_NE(Session::open(options, {.store = Store::kRead}).value()->store(), nullptr);
  options.records.use_db = false;
  EXPECT_EQ(Session::open(options, {.store = Store::kWrite}).value()->store(), nullptr);
}

TEST(Session, the_space_of_a_task_is_made_once) {
  const auto session = Session::open(without_store()).value();
  const compute::Dag dag = compute::testing::gemm(32, 32, 32);
  const uint64_t key = compute::task_key(dag);
  const TaskPtr task = session->tasks().get(dag, key);
  EXPECT_EQ(task, session->tasks().get(compute::testing::gemm(32, 32, 32), key));
  EXPECT_EQ(&task->space(session->accuracy()), &task->space(session->accuracy()));
  EXPECT_NE(&task->space(trial::Accuracy::kStrict), &task->space(trial::Accuracy::kDefault));
  EXPECT_GT(task->least_flops(session->accuracy()), 0);
}

TEST(Session, dags_of_one_key_that_cannot_share_a_kernel_are_two_tasks) {
  const auto session = Session::open(without_store()).value();
  compute::Dag dag = compute::testing::gemm(32, 32, 32);
  const uint64_t key = compute::task_key(dag);
  const TaskPtr task = session->tasks().get(dag, key);
  std::swap(dag.params[0], dag.params[1]);
  ASSERT_EQ(compute::task_key(dag), key);
  EXPECT_NE(task, session->tasks().get(dag, key));
}

TEST(Session, a_schedule_is_lowered_and_compiled_once) {
  const auto session = Session::open(without_store()).value();
  const compute::Dag dag = compute::testing::gemm(32, 32, 32);
  const TaskPtr task = session->tasks().get(dag, compute::task_key(dag));
  const space::Space& space = *task->space(session->accuracy());
  const schedule::Steps usual = space.steps(space.default_point());
  KernelTable& kernels = session->kernels();
  const LoweredPtr lowered = kernels.lower(task, usual).value();
  const KernelPtr kernel = kernels.build(task, usual).value();
  EXPECT_EQ(kernel->lowered, lowered);
  EXPECT_EQ(kernels.build(task, usual).value(), kernel);
  EXPECT_EQ(kernels.lowered(), 1);
  EXPECT_NE(kernels.build(task, {}).value(), kernel);
  EXPECT_EQ(kernels.lowered(), 2);
}

// A net's file is read, and its library loaded, once in a run.
TEST(Session, a_model_takes_the_cost_model_of_its_session) {
  const CompileOptions options = without_store();
  graph::TestModel model;
  model.input("x", {4, 4}).node("Relu", {"x"}, {"y"}).output("y");
  const auto session = Session::open(options).value();
  EXPECT_EQ(make_tasks(*session, model.graph(), options)->cost(), session->cost());
}

}  // namespace
}  // namespace hone
