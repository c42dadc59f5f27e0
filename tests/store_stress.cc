// One of many tuners that share a store and are killed at any moment (store_stress.py), and the
// check afterwards. Every record carries the name and size of its batch and a checksum; a batch
// that the store has acknowledged is written to a log.
//
//   hone_store_stress write DB LOG SEED BATCHES    made-up records as fast as it goes
//   hone_store_stress tune DB LOG SEED BATCHES     the tuning loop with times that are made up
//   hone_store_stress check DB LOG...              exit code 1 and what is lost or torn
//
// BATCHES: ends after so many; 0: never.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>

#include "hone/base/hash.h"
#include "hone/base/rng.h"
#include "hone/compute/dag_testing.h"
#include "hone/cost/registry.h"
#include "hone/db/copy.h"
#include "hone/db/forwarding_store_testing.h"
#include "hone/db/registry.h"
#include "hone/measure/null_runner.h"
#include "hone/search/tune_tasks.h"

namespace hone {
namespace {

std::string checksum(trial::Record record) {
  record.message.clear();
  return hash_hex(db::identity(record));
}

// Marks what is added, and logs what was acknowledged.
class LoggedStore final : public db::ForwardingStore {
 public:
  LoggedStore(db::Store& store, int log, int batches)
      : ForwardingStore(store), log_(log), batches_(batches) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    run_ = fmt::format("{}.{}", getpid(), std::chrono::nanoseconds(now).count());
  }
  Result<std::vector<int64_t>> add(std::span<const trial::Record> batch) override {
    if (batch.empty()) return ForwardingStore::add(batch);
    const std::string name = fmt::format("{}.{}/{}", run_, ++written_, batch.size());
    std::vector<trial::Record> marked(batch.begin(), batch.end());
    for (trial::Record& record : marked) {
      record.model = name;
      record.message = checksum(record);
    }
    Result<std::vector<int64_t>> ids = ForwardingStore::add(marked);
    if (!ids.ok()) return ids;
    const std::string line = name + "\n";
    if (::write(log_, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
      return error(Code::kIo, "cannot write the log");
    if (batches_ > 0 && written_ >= batches_) _exit(0);
    return ids;
  }

 private:
  int log_, batches_, written_ = 0;
  std::string run_;
};

Status write(db::Store& store, uint64_t seed) {
  Rng rng(seed);
  for (;;) {
    std::vector<trial::Record> batch(static_cast<size_t>(rng.between(1, 12)));
    // A choice is between trials of one task on one device.
    const auto task = static_cast<uint64_t>(rng.below(50));
    const std::string device = fmt::format("device {}", rng.below(3));
    for (trial::Record& record : batch) {
      record.task = task;
      record.kernel_class = "stress";
      record.task_text = "text";
      record.device = device;
      record.steps = std::string(static_cast<size_t>(rng.between(10, 3000)), 's');
      record.times = {1e-3 * (1 + rng.uniform()), 1e-3};
      record.centre = record.times[0];
      record.seed = rng.next();
      record.verified = rng.chance(0.5);
    }
    HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> ids, store.add(batch));
    const std::vector<db::Choice> choice = {{ids.front(), ids.back()}};
    HONE_RETURN_IF_ERROR(store.choose(rng.next(), choice));
    HONE_RETURN_IF_ERROR(store.best({.task = batch[0].task, .device = batch[0].device}).status());
  }
}

Status tune(db::TrialStore& store, uint64_t seed) {
  const compute::Dag dag = compute::testing::gemm(8, 64, 32);
  const search::TuneTask task{&dag, compute::task_key(dag), 1, "gemm"};
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<cost::CostModel> model, cost::make_model("analytic"));
  measure::NullRunner runner([](const measure::Job& job) -> Result<double> {
    return 1e-4 * (1 + static_cast<double>(hash_string(job.executable.code.str()) % 1000) / 100);
  });
  for (uint64_t run = 0;; ++run) {
    search::TuneLoopOptions options;
    options.context = {.target = &target::host(),
                       .model = model.get(),
                       .device = "test",
                       .version = "1",
                       .seed = hash_combine(seed, run),
                       .tolerance = 0};
    options.runner = &runner;
    options.store = &store;
    options.batch = 3;
    options.deadline = 1e18;
    options.max_trials = 30;
    HONE_RETURN_IF_ERROR(search::tune_tasks(std::span(&task, 1), options).status());
  }
}

Status check(db::Store& store, std::span<char*> logs) {
  struct Batch {
    int64_t size, found = 0;
  };
  std::map<std::string, Batch> batches;
  int64_t records = 0, wrong = 0;
  HONE_RETURN_IF_ERROR(db::for_each_record(store, {}, [&](trial::Record&& record) {
    ++records;
    const size_t slash = record.model.find('/');
    const bool whole = slash != std::string::npos && record.message == checksum(record);
    if (!whole) {
      fmt::print("trial {} is torn\n", record.id);
      ++wrong;
      return ok_status();
    }
    ++batches.try_emplace(record.model, Batch{std::stoll(record.model.substr(slash + 1))})
          .first->second.found;
    return ok_status();
  }));
  for (const auto& [name, batch] : batches) {
    if (batch.found == batch.size) continue;
    fmt::print("batch {} has {} trials\n", name, batch.found);
    ++wrong;
  }
  int64_t acknowledged = 0;
  for (const char* log : logs) {
    std::ifstream file(log);
    for (std::string line; std::getline(file, line); ++acknowledged) {
      if (batches.contains(line)) continue;
      fmt::print("batch {} is lost\n", line);
      ++wrong;
    }
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<std::string> problems, store.verify());
  for (const std::string& problem : problems) fmt::print("{}\n", problem);
  if (wrong > 0 || !problems.empty()) return invalid("records were lost or torn");
  fmt::print("{} records in {} batches, {} of them acknowledged: none lost or torn\n", records,
             batches.size(), acknowledged);
  return ok_status();
}

Status run(std::span<char*> arguments) {
  if (arguments.size() < 3) return invalid("expected a command, a database and logs");
  const std::string command = arguments[1];
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<db::Store> store,
                        db::open_store(arguments[2], {.busy_timeout_ms = 60'000}));
  if (command == "check") return check(*store, arguments.subspan(3));
  if (arguments.size() != 6) return invalid("expected DB LOG SEED BATCHES");
  const int log = open(arguments[3], O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (log < 0) return error(Code::kIo, "cannot open {}", arguments[3]);
  LoggedStore logged(*store, log, std::stoi(arguments[5]));
  const uint64_t seed = std::stoull(arguments[4]);
  return command == "tune" ? tune(logged, seed) : write(logged, seed);
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) {
  const hone::Status status = hone::run({argv, static_cast<size_t>(argc)});
  if (status.ok()) return 0;
  fmt::print(stderr, "{}\n", status.message());
  return 1;
}
