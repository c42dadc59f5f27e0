#include "hone/measure/counter_events.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "hone/base/file.h"

namespace hone::measure {
namespace {

// Formats as the kernel's files give them.
const std::map<std::string, std::string, std::less<>> kAmd = {{"event", "config:0-7,32-35"},
                                                              {"umask", "config:8-15"},
                                                              {"edge", "config:18"},
                                                              {"ldlat", "config1:0-15"}};

Result<uint64_t> encode(std::string_view terms) {
  return encode_event(terms, [](std::string_view term) -> Result<std::string> {
    const auto found = kAmd.find(term);
    if (found == kAmd.end()) return error(Code::kNotFound, "no format {}", term);
    return found->second;
  });
}

TEST(counter_events, terms_become_bits_where_formats_say) {
  EXPECT_EQ(*encode("event=0xa0,umask=0x1e"), 0x1ea0U);
  EXPECT_EQ(*encode("event=0x00,umask=0x4"), 0x400U);
  EXPECT_EQ(*encode("event=0x00,umask=0x87"), 0x8700U);
  EXPECT_EQ(*encode("event=0x1a0,umask=0x1e"), 0x100001ea0U);
  EXPECT_EQ(*encode("event=0xd6,umask=0xa2"), 0xa2d6U);
  EXPECT_EQ(*encode("event=118"), 0x76U);
  EXPECT_EQ(*encode("event=0x76,edge"), 0x40076U);
}

TEST(counter_events, what_is_no_event_is_refused) {
  EXPECT_EQ(encode("event=0x76,umask=").status().message(),
            "found 'umask=', expected a term such as umask=0x1e");
  EXPECT_EQ(encode("event=zero").status().message(),
            "found 'event=zero', expected a term such as umask=0x1e");
  EXPECT_EQ(encode("umask=0x100").status().message(),
            "a value does not fit the format 'config:8-15'");
  EXPECT_EQ(encode("event=0x2000").status().code(), Code::kInvalid);
  EXPECT_EQ(encode("cmask=1").status().code(), Code::kNotFound);
  EXPECT_EQ(encode("ldlat=3").status().message(),
            "found the format 'config1:0-15', expected one such as config:0-7,32-35");
  EXPECT_FALSE(encode("").ok());
  for (const char* format : {"", "config:", "config:8-", "config:9-8", "config:0-64", "config:x"}) {
    const auto bad = [&](std::string_view) { return Result<std::string>(std::string(format)); };
    EXPECT_EQ(encode_event("event=1", bad).status().code(), Code::kUnsupported) << format;
  }
}

const CounterPlan* plan_of(const std::string& vendor, int family, int model) {
  return find_counter_plan({.vendor = vendor, .family = family, .model = model});
}

TEST(counter_events, plans_are_for_the_cpus_they_are_known_of) {
  EXPECT_EQ(plan_of("GenuineIntel", 6, 0x8f)->name, "intel_topdown");
  EXPECT_EQ(plan_of("AuthenticAMD", 0x19, 0x11)->name, "amd_zen4");
  EXPECT_EQ(plan_of("AuthenticAMD", 0x19, 0x61)->name, "amd_zen4");
  EXPECT_EQ(plan_of("AuthenticAMD", 0x1a, 0x02)->name, "amd_zen5");
  EXPECT_EQ(plan_of("AuthenticAMD", 0x1a, 0x44)->name, "amd_zen5");
  EXPECT_EQ(plan_of("AuthenticAMD", 0x19, 0x01), nullptr);  // Zen 3
  EXPECT_EQ(plan_of("AuthenticAMD", 0x1a, 0x50), nullptr);  // Zen 6
  EXPECT_EQ(plan_of("AuthenticAMD", 0x17, 0x31), nullptr);
  EXPECT_EQ(plan_of("", 0, 0), nullptr);
  std::set<std::string_view> names;
  for (const CounterPlan& plan : counter_plans()) {
    EXPECT_TRUE(names.insert(plan.name).second);
    EXPECT_LE(plan.events.size(), 6U) << "a group has to fit the counters of one core";
  }
}

std::optional<trial::BoundScores> scores_of(std::string_view plan, std::vector<double> counts) {
  for (const CounterPlan& one : counter_plans()) {
    if (one.name == plan) return one.scores(counts);
  }
  return std::nullopt;
}

TEST(counter_events, intels_core_bound_is_the_rest_of_the_back_end) {
  const auto scores = scores_of("intel_topdown", {1000, 600, 450});
  EXPECT_DOUBLE_EQ(scores->memory, 0.45);
  EXPECT_DOUBLE_EQ(scores->core, 0.15);
  // Rounding in the counters: never below nothing.
  EXPECT_EQ(scores_of("intel_topdown", {1000, 300, 301})->core, 0);
  EXPECT_FALSE(scores_of("intel_topdown", {0, 0, 0}));
}

TEST(counter_events, amds_back_end_is_split_as_its_stalls_are) {
  // 100 cycles of 6 slots, 300 of them lost, three quarters of the time for data.
  const auto zen4 = scores_of("amd_zen4", {100, 300, 30, 40});
  EXPECT_DOUBLE_EQ(zen4->memory, 0.375);
  EXPECT_DOUBLE_EQ(zen4->core, 0.125);
  const auto zen5 = scores_of("amd_zen5", {100, 400, 10, 40});
  EXPECT_DOUBLE_EQ(zen5->memory, 0.125);
  EXPECT_DOUBLE_EQ(zen5->core, 0.375);
  EXPECT_FALSE(scores_of("amd_zen4", {0, 300, 30, 40}));
  EXPECT_FALSE(scores_of("amd_zen4", {100, 0, 0, 0})) << "a machine that does not count stalls";
  const auto too_many = scores_of("amd_zen4", {100, 700, 50, 40});
  EXPECT_EQ(too_many->memory, 1);
  EXPECT_EQ(too_many->core, 0);
}

// A folder such as /sys/bus/event_source/devices.
class Devices {
 public:
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(folder_.file(path)).parent_path());
    ASSERT_TRUE(write_file_atomic(folder_.file(path), text + "\n").ok());
  }
  void add_cpu(const std::string& name, const std::string& type) const {
    write(name + "/type", type);
    write(name + "/format/event", "config:0-7,32-35");
    write(name + "/format/umask", "config:8-15");
  }
  [[nodiscard]] Result<HardwareEvents> find(const std::string& vendor, int family,
                                            int model) const {
    return find_events({.vendor = vendor, .family = family, .model = model}, folder_.path());
  }
  [[nodiscard]] std::string message(const std::string& vendor, int family, int model) const {
    return find(vendor, family, model).status().message();
  }
  [[nodiscard]] const std::string& path() const { return folder_.path(); }

 private:
  TempDir folder_ = std::move(TempDir::create()).value();
};

TEST(counter_events, amds_are_found_by_their_codes) {
  const Devices devices;
  EXPECT_EQ(devices.message("AuthenticAMD", 0x19, 0x11),
            "no hardware counters here: there is no " + devices.path() + "/cpu");
  devices.add_cpu("cpu", "4");
  const auto events = devices.find("AuthenticAMD", 0x19, 0x11);
  ASSERT_TRUE(events.ok()) << events.status().message();
  EXPECT_EQ(events->plan->name, "amd_zen4");
  EXPECT_EQ(events->type, 4U);
  EXPECT_EQ(events->configs, (std::vector<uint64_t>{0x76, 0x100001ea0, 0xa2d6, 0x2d6}));
  EXPECT_EQ(devices.message("AuthenticAMD", 0x17, 0x31),
            "no events of this CPU are known that tell memory from the core");
  devices.write("cpu/type", "four");
  EXPECT_EQ(devices.message("AuthenticAMD", 0x19, 0x11),
            devices.path() + "/cpu/type: found 'four', expected a number");
}

TEST(counter_events, intels_are_found_by_their_names) {
  const Devices devices;
  devices.add_cpu("cpu_core", "10");  // as on a machine that also has slow cores
  devices.write("cpu_core/events/slots", "event=0x00,umask=0x4");
  devices.write("cpu_core/events/topdown-be-bound", "event=0x00,umask=0x83");
  EXPECT_EQ(devices.message("GenuineIntel", 6, 0x97), "this CPU does not count topdown-mem-bound");
  devices.write("cpu_core/events/topdown-mem-bound", "event=0x00,umask=0x87");
  const auto events = devices.find("GenuineIntel", 6, 0x97);
  ASSERT_TRUE(events.ok()) << events.status().message();
  EXPECT_EQ(events->type, 10U);
  EXPECT_EQ(events->configs, (std::vector<uint64_t>{0x400, 0x8300, 0x8700}));
}

}  // namespace
}  // namespace hone::measure
