// Seconds for the ten best of a task among very many records, in a store made for it:
//
//   hone_store_topk [records, 1000000] [--db of an empty store, a temporary file]
//
// Tasks, devices and versions are spread as in a shared store: 500 tasks, of which few have most of
// the records, 4 devices, 3 versions.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "hone/base/file.h"
#include "hone/base/rng.h"
#include "hone/db/registry.h"

namespace hone {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

uint64_t some_task(Rng& rng) { return static_cast<uint64_t>(500 * std::pow(rng.uniform(), 3)); }
std::string some_device(Rng& rng) { return fmt::format("device {}", rng.below(4)); }

trial::Record some_record(Rng& rng) {
  trial::Record r;
  r.task = some_task(rng);
  r.kernel_class = "conv2d+bias+relu";
  r.device = some_device(rng);
  r.version = std::to_string(rng.below(3));
  r.algorithm = rng.chance(0.3) ? "winograd_4" : "direct";
  const bool winograd = r.algorithm == "winograd_4";
  r.steps = (winograd ? "winograd(conv2d, 4)\n" : "") + std::string(300, 's');
  r.accuracy = trial::accuracy_of(r.steps);
  r.centre = (winograd ? 1e-3 : 2e-3) * (1 + rng.uniform());
  r.times = {r.centre, r.centre, r.centre};
  r.threads = static_cast<int>(rng.between(1, 2));
  r.verified = rng.chance(0.8);
  return r;
}

Status run(int argc, char** argv) {
  const int64_t records = argc > 1 ? std::atoll(argv[1]) : 1'000'000;
  HONE_ASSIGN_OR_RETURN(const TempDir folder, TempDir::create());
  HONE_ASSIGN_OR_RETURN(const auto store,
                        db::open_store(argc > 2 ? argv[2] : folder.file("trials.db")));
  Rng rng(1);
  const double start = now();
  for (int64_t stored = 0; stored < records;) {
    std::vector<trial::Record> batch;
    for (; stored < records && batch.size() < 10'000; ++stored) batch.push_back(some_record(rng));
    HONE_RETURN_IF_ERROR(store->add(batch).status());
  }
  fmt::print("{} records stored, {:.0f} a second\n", records,
             static_cast<double>(records) / (now() - start));
  struct Case {
    const char* name;
    std::string version, algorithm;
    trial::Accuracy accuracy = trial::Accuracy::kDefault;
  };
  for (const Case& c :
       {Case{"any", "", ""}, Case{"one version", "1", ""}, Case{"one algorithm", "", "direct"},
        Case{"strict", "", "", trial::Accuracy::kStrict}, Case{"a version without any", "9", ""}}) {
    std::vector<double> times;
    for (int i = 0; i < 2000; ++i) {
      const db::BestQuery query = {.task = some_task(rng),
                                   .device = some_device(rng),
                                   .threads = static_cast<int>(rng.between(1, 2)),
                                   .version = c.version,
                                   .algorithm = c.algorithm,
                                   .accuracy = c.accuracy,
                                   .limit = 10};
      const double begin = now();
      HONE_RETURN_IF_ERROR(store->best(query).status());
      times.push_back(now() - begin);
    }
    std::sort(times.begin(), times.end());
    fmt::print("ten best, {:22} median {:7.1f} us, 99 % within {:7.1f} us\n", c.name,
               1e6 * times[times.size() / 2], 1e6 * times[times.size() * 99 / 100]);
  }
  return ok_status();
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) {
  const hone::Status status = hone::run(argc, argv);
  if (!status.ok()) fmt::print(stderr, "{}\n", status.message());
  return status.ok() ? 0 : 1;
}
