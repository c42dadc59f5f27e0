#include "hone/measure/counter_events.h"

#include <algorithm>
#include <charconv>

#include "hone/base/file.h"

namespace hone::measure {
namespace {

bool within(int value, int first, int last) { return first <= value && value <= last; }

trial::BoundScores shares(double memory, double core, double slots) {
  const trial::BoundScores scores = {std::clamp(memory / slots, 0.0, 1.0),
                                     std::clamp(core / slots, 0.0, 1.0)};
  const double all = std::max(1.0, scores.memory + scores.core);
  return {scores.memory / all, scores.core / all};
}

// Intel from Sapphire Rapids on: the kernel counts these in slots; `slots` has to lead the group
// (Linux, tools/perf/Documentation/topdown.txt). Older ones do not count topdown-mem-bound.
constexpr CounterEvent kIntelEvents[] = {
    {"slots", ""}, {"topdown-be-bound", ""}, {"topdown-mem-bound", ""}};

bool is_intel(const target::CpuId& cpu) { return cpu.vendor == "GenuineIntel"; }

std::optional<trial::BoundScores> intel_scores(std::span<const double> counts) {
  const double slots = counts[0], backend = counts[1], memory = counts[2];
  if (slots <= 0) return std::nullopt;
  return shares(memory, backend - memory, slots);
}

// AMD Zen 4 and 5. Codes and formulas (backend_bound_memory and backend_bound_cpu, of Zen 5
// backend_bound_by_memory and backend_bound_by_cpu): Linux, tools/perf/pmu-events/arch/x86/
// amdzen4/{core,other,pipeline}.json and amdzen5/{decode,execution,load-store,pipeline}.json.
// Models: arch/x86/kernel/cpu/amd.c.
constexpr CounterEvent kAmdEvents[] = {
    {"ls_not_halted_cyc", "event=0x76"},
    {"de_no_dispatch_per_slot.backend_stalls", "event=0x1a0,umask=0x1e"},
    {"ex_no_retire.load_not_complete", "event=0xd6,umask=0xa2"},
    {"ex_no_retire.not_complete", "event=0xd6,umask=0x02"}};

bool is_zen4(const target::CpuId& cpu) {
  return cpu.vendor == "AuthenticAMD" && cpu.family == 0x19 &&
         (within(cpu.model, 0x10, 0x1f) || within(cpu.model, 0x60, 0xaf));
}
bool is_zen5(const target::CpuId& cpu) {
  return cpu.vendor == "AuthenticAMD" && cpu.family == 0x1a &&
         (within(cpu.model, 0x00, 0x2f) || within(cpu.model, 0x40, 0x4f) ||
          within(cpu.model, 0x60, 0x7f));
}

template <int kSlotsPerCycle>
std::optional<trial::BoundScores> amd_scores(std::span<const double> counts) {
  const double slots = kSlotsPerCycle * counts[0], backend = counts[1];
  // No program retires something in every cycle: a virtual machine that does not count it.
  if (slots <= 0 || counts[3] <= 0) return std::nullopt;
  const double memory = backend * std::min(1.0, counts[2] / counts[3]);
  return shares(memory, backend - memory, slots);
}

constexpr CounterPlan kPlans[] = {
    {"intel_topdown", is_intel, kIntelEvents, intel_scores},
    {"amd_zen4", is_zen4, kAmdEvents, amd_scores<6>},
    {"amd_zen5", is_zen5, kAmdEvents, amd_scores<8>},
};

// Returns the text before the next comma and removes both.
std::string_view next_part(std::string_view& rest) {
  const std::string_view part = rest.substr(0, rest.find(','));
  rest.remove_prefix(std::min(rest.size(), part.size() + 1));
  return part;
}

// Hexadecimal behind 0x, else decimal.
std::optional<uint64_t> parse_number(std::string_view text) {
  const bool hex = text.starts_with("0x");
  if (hex) text.remove_prefix(2);
  uint64_t value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

// The value's bits, lowest first, at the places of a format such as "config:0-7,32-35".
Result<uint64_t> place_bits(uint64_t value, std::string_view format) {
  const auto bad = [format] {
    return error(Code::kUnsupported, "found the format '{}', expected one such as config:0-7,32-35",
                 format);
  };
  constexpr std::string_view kWord = "config:";
  if (!format.starts_with(kWord)) return bad();
  std::string_view rest = format.substr(kWord.size());
  uint64_t config = 0;
  do {
    const std::string_view range = next_part(rest);
    const size_t dash = range.find('-');
    const auto first = parse_number(range.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_number(range.substr(dash + 1));
    if (!first || !last || *first > *last || *last >= 64) return bad();
    for (uint64_t bit = *first; bit <= *last; ++bit, value >>= 1) config |= (value & 1) << bit;
  } while (!rest.empty());
  if (value != 0) return invalid("a value does not fit the format '{}'", format);
  return config;
}

// The first line of a file.
Result<std::string> read_line(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(std::string text, read_file(path));
  text.resize(std::min(text.size(), text.find('\n')));
  return text;
}

}  // namespace

std::span<const CounterPlan> counter_plans() { return kPlans; }

const CounterPlan* find_counter_plan(const target::CpuId& cpu) {
  const auto* plan = std::find_if(std::begin(kPlans), std::end(kPlans),
                                  [&](const CounterPlan& one) { return one.fits(cpu); });
  return plan == std::end(kPlans) ? nullptr : plan;
}

Result<uint64_t> encode_event(std::string_view terms, const TermFormat& format_of) {
  uint64_t config = 0;
  do {
    const std::string_view term = next_part(terms);
    const size_t equals = term.find('=');
    const bool has_value = equals != std::string_view::npos;
    const auto value = parse_number(has_value ? term.substr(equals + 1) : "1");
    if (!value) return invalid("found '{}', expected a term such as umask=0x1e", term);
    HONE_ASSIGN_OR_RETURN(const std::string format, format_of(term.substr(0, equals)));
    HONE_ASSIGN_OR_RETURN(const uint64_t bits, place_bits(*value, format));
    config |= bits;
  } while (!terms.empty());
  return config;
}

Result<HardwareEvents> find_events(const target::CpuId& cpu, const std::string& devices) {
  HardwareEvents events{.plan = find_counter_plan(cpu)};
  if (events.plan == nullptr) {
    return error(Code::kUnsupported,
                 "no events of this CPU are known that tell memory from the core");
  }
  // Where cores are of two kinds, the fast ones have the name "cpu_core".
  std::string folder = devices + "/cpu";
  if (!file_exists(folder)) folder = devices + "/cpu_core";
  if (!file_exists(folder))
    return error(Code::kUnsupported, "no hardware counters here: there is no {}/cpu", devices);
  HONE_ASSIGN_OR_RETURN(const std::string type, read_line(folder + "/type"));
  const auto number = parse_number(type);
  if (!number || *number > UINT32_MAX)
    return invalid("{}/type: found '{}', expected a number", folder, type);
  events.type = static_cast<uint32_t>(*number);
  const TermFormat format_of = [&](std::string_view term) {
    return read_line(fmt::format("{}/format/{}", folder, term));
  };
  for (const CounterEvent& event : events.plan->events) {
    std::string terms(event.terms);
    if (terms.empty()) {
      const std::string file = fmt::format("{}/events/{}", folder, event.name);
      if (!file_exists(file))
        return error(Code::kUnsupported, "this CPU does not count {}", event.name);
      HONE_ASSIGN_OR_RETURN(terms, read_line(file));
    }
    HONE_ASSIGN_OR_RETURN(const uint64_t config, encode_event(terms, format_of));
    events.configs.push_back(config);
  }
  return events;
}

}  // namespace hone::measure
