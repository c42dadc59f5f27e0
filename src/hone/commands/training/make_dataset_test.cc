#include <gtest/gtest.h>

#include "hone/base/file.h"
#include "hone/dataset.h"
#include "hone/db/registry.h"
#include "hone/graph/test_model.h"
#include "hone/machine/null.h"
#include "hone/session/compile_options.h"
#include "hone/target/target.h"

namespace hone {
namespace {

TEST(dataset_make, measures_on_the_machine_that_is_given) {
  target::Target target = target::host();
  target.cpu().cores = 1;
  for (target::Cache& cache : target.cpu().caches) cache.bytes /= 2;
  std::atomic<int> jobs = 0;
  const machine::NullMachine machine(target, [&jobs](const measure::Job& job) {
    ++jobs;
    EXPECT_EQ(job.threads, 1);
    return 1e-6 * static_cast<double>(job.executable.entries.size());
  });
  const TempDir folder = std::move(TempDir::create()).value();
  Rng rng(5);
  graph::TestModel model;
  model.input("x", {16, 64}).constant("w", graph::random_tensor({64, 48}, rng));
  model.node("MatMul", {"x", "w"}, {"y"}).output("y");
  const std::string path = folder.file("model.onnx");
  ASSERT_TRUE(write_file_atomic(path, model.bytes()).ok());

  DatasetOptions options;
  const JobHooks hooks{.machine = &machine};
  options.hooks = &hooks;
  options.db = folder.file("data.db");
  options.schedules = 6;
  options.tolerance = 0;
  const Result<DatasetTasks> tasks = collect_tasks({path}, options);
  ASSERT_TRUE(tasks.ok()) << tasks.status().message();
  ASSERT_EQ(tasks->tasks.size(), 1U);
  const Result<DatasetSummary> made = make_dataset(*tasks, options);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_GE(jobs, 6);
  const std::unique_ptr<db::Store> store = db::open_store(options.db).value();
  const std::vector<trial::Record> records = store->query({}).value();
  EXPECT_EQ(records.size(), 6U);
  for (const trial::Record& record : records) {
    EXPECT_EQ(record.device, target::device_key(target));
    EXPECT_EQ(record.threads, 1);
  }

  options.threads = {2};
  const Result<DatasetSummary> more = make_dataset(*tasks, options);
  EXPECT_EQ(more.status().message(), "2 threads, but this machine has 1 cores");
}

}  // namespace
}  // namespace hone
