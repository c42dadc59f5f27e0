
#include "hone/device.h"

#include "command.h"
#include "command_files.h"
#include "interrupt.h"
#include "json_text.h"
#include "option_texts.h"

namespace hone::tool {
namespace {

Json to_json(const GpuDevice& gpu, const Device& device) {
  return {{"name", device.name},
          {"key", device.key},
          {"kind", "GPU"},
          {"interface", gpu.interface},
          {"architecture", gpu.architecture},
          {"multiprocessors", gpu.multiprocessors},
          {"ghz", gpu.ghz},
          {"flops", gpu.flops},
          {"l2_bytes", gpu.l2_bytes},
          {"memory_bytes", gpu.memory_bytes},
          {"memory_bandwidth", gpu.memory_bandwidth}};
}

Json to_json(const Device& t) {
  if (t.gpu) return to_json(*t.gpu, t);
  Json caches = Json::array();
  for (const DeviceCache& cache : t.caches) {
    caches.push_back({{"level", cache.level},
                      {"bytes", cache.bytes},
                      {"line_bytes", cache.line_bytes},
                      {"shared_by", cache.shared_by}});
  }
  return {{"name", t.name},
          {"key", t.key},
          {"kind", "CPU"},
          {"triple", t.triple},
          {"cpu", t.cpu},
          {"cores", t.cores},
          {"ghz", t.ghz},
          {"vector_bytes", t.vector_bytes},
          {"vector_registers", t.vector_registers},
          {"caches", caches}};
}

// A GPU that this machine does not have.
Json missing(const std::string& name, const Status& status) {
  return {{"name", name}, {"key", nullptr}, {"kind", "GPU"}, {"missing", status.message()}};
}

Json to_json(const Roofline& roofline) {
  Json levels = Json::array();
  for (const RooflineLevel& level : roofline.levels) {
    levels.push_back({{"level", level.level},
                      {"bytes", level.bytes},
                      {"shared_by", level.shared_by},
                      {"read_one", level.read.one},
                      {"read_all", level.read.all},
                      {"write_one", level.write.one},
                      {"write_all", level.write.all}});
  }
  Json fork_join = Json::array();
  for (const auto& [threads, seconds] : roofline.fork_join)
    fork_join.push_back({{"threads", threads}, {"seconds", seconds}});
  return {{"cores", roofline.cores},
          {"flops_one", roofline.flops.one},
          {"flops_all", roofline.flops.all},
          {"fork_join_seconds", fork_join_seconds(roofline, roofline.cores)},
          {"fork_join", fork_join},
          {"levels", levels},
          {"unix_time", roofline.unix_time},
          {"host_load", roofline.host_load}};
}

struct Options {
  std::string db;
  std::string machine;
  bool measure = false;
  bool cores = false;
  int threads = 0;     // 0: as many as there are cores
  double nearest = 0;  // seconds; 0: not seen yet
  bool json = false;
};

// How the cores stand to each other now: on a virtual machine that changes.
Status show_cores(const Options& options) {
  const CoreReport report = look_at_cores(options.threads, options.nearest);
  if (options.json) {
    fmt::print("{}", json_text({{"threads", report.threads},
                                {"slowdown", report.slowdown},
                                {"exchange_seconds", report.exchange_seconds},
                                {"apart", report.apart},
                                {"good", report.good},
                                {"nearest_seconds", report.nearest_seconds}}));
  } else {
    fmt::print("{} threads at once take {:.2f} of the time of one alone: {}\n", report.threads,
               report.slowdown, report.apart ? "each has a core" : "they share cores");
    if (report.threads > 1)
      fmt::print("a cache line goes to the farthest and back in {:.0f} ns\n",
                 1e9 * report.exchange_seconds);
  }
  return ok_status();
}

// A machine elsewhere, by what it says of itself.
Status show_machine(const Options& options) {
  HONE_ASSIGN_OR_RETURN(const Device device, find_device("host", options.machine));
  if (options.json) {
    fmt::print("{}", json_text(Json::array({to_json(device)})));
  } else {
    fmt::print("{}", device.text);
  }
  return ok_status();
}

Status show_devices(const Options& options) {
  if (!options.machine.empty()) return show_machine(options);
  if (options.cores) return show_cores(options);
  if (options.measure)
    HONE_RETURN_IF_ERROR(measure_roofline(options.db, &listen_for_interrupt()).status());
  HONE_ASSIGN_OR_RETURN(const std::optional<Roofline> roofline, stored_roofline(options.db));
  Json json = Json::array();
  std::string text;
  for (const std::string& name : device_names()) {
    const Result<Device> device = find_device(name);
    const bool measured = roofline && name == "host";
    if (options.json) {
      json.push_back(device.ok() ? to_json(*device) : missing(name, device.status()));
      if (measured) json.back()["roofline"] = to_json(*roofline);
    } else {
      text += fmt::format(
          "{}{}{}\n", text.empty() ? "" : "\n",
          device.ok() ? device->text
                      : fmt::format("name: {}\nmissing: {}\n", name, device.status().message()),
          measured ? describe(*roofline) : "");
      while (text.size() > 1 && text[text.size() - 2] == '\n') text.pop_back();
    }
  }
  fmt::print("{}", options.json ? json_text(json) : text);
  return ok_status();
}

}  // namespace

Command devices_command(CLI::App& root) {
  const auto options = std::make_shared<Options>();
  CLI::App* app = root.add_subcommand(
      "devices", "List this machine, its GPUs, and the devices that are described");
  CLI::Option* measure =
      app->add_flag("--measure", options->measure,
                    "First measure this machine's limits in about 5 seconds and store them:\n"
                    "peak rate, bandwidth of each cache and of memory, fork and join of threads");
  CLI::Option* cores = app->add_flag(
      "--cores", options->cores,
      "Only check, within a millisecond, whether threads have a core each now, and how far apart "
      "these are:\n"
      "the CPUs of a virtual machine may be one core's hardware threads for a while");
  cores->excludes(measure);
  app->add_option("--threads", options->threads,
                  "Number of threads, at most that of cores (default: the number of cores)")
      ->needs(cores)
      ->check(CLI::PositiveNumber);
  app->add_option(
         "--nearest", options->nearest,
         "How close cores were before: the least \"nearest_seconds\" of earlier checks. The "
         "current\n"
         "cores are \"good\" if they are separate and about as close (default: no earlier check)")
      ->needs(cores)
      ->type_name("SECONDS")
      ->check(CLI::NonNegativeNumber);
  app->add_option("--machine", options->machine,
                  "Only show what a machine elsewhere is: grpc://HOST:PORT, where hone serve runs, "
                  "or a file about it")
      ->type_name("MACHINE")
      ->excludes(measure)
      ->excludes(cores);
  add_db(*app, options->db);
  add_json(*app, options->json);
  return {app, [options] { return show_devices(*options); },
          [options](FileRoles& files) {
            add_database_files("--db", options->db, DatabaseUse::kWrite, files);
          }};
}

}  // namespace hone::tool
