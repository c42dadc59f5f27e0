#include "hone/target/target.h"

#include <algorithm>
#include <charconv>

#include "hone/target/cpuid.h"
#include "hone/target/machine_table.h"
#include "hone/target/topology.h"

namespace hone::target {
namespace {

struct Description {
  const char* name;
  const char* triple;
  const char* cpu;
  std::vector<std::string> features;
  int cores;
};

const std::vector<Description>& descriptions() {
  static const std::vector<Description> all = {
      {"x86-64-avx2", "x86_64-linux-gnu", "x86-64-v3", {"+avx2", "+fma", "+f16c"}, 4},
      {"x86-64-avx512",
       "x86_64-linux-gnu",
       "x86-64-v4",
       {"+avx512f", "+avx512bw", "+avx512cd", "+avx512dq", "+avx512vl", "-prefer-256-bit"},
       4},
      {"aarch64-neon", "aarch64-linux-gnu", "neoverse-n1", {"+neon"}, 4},
  };
  return all;
}

void fill_numbers(Target& t, const MachineNumbers& m) {
  t.vector_bytes = m.vector_bytes;
  t.vector_registers = m.vector_registers;
  t.masked_memory = m.masked_memory;
  t.broadcast_operand = m.broadcast_operand;
  t.fma_per_cycle = m.fma_per_cycle;
  t.fma_latency = m.fma_latency;
  t.loads_per_cycle = m.loads_per_cycle;
  t.memory_bytes_per_cycle = m.memory_bytes_per_cycle;
  t.caches.clear();
  for (int level = 1; level <= 3; ++level) {
    t.caches.push_back({level, m.cache_bytes[level - 1], 64, level == 3 ? m.l3_shared_by : 1,
                        m.cache_bytes_per_cycle[level - 1]});
  }
}

Target from_description(const Description& d) {
  Target t;
  t.name = d.name;
  t.triple = d.triple;
  t.cpu = d.cpu;
  t.features = d.features;
  t.cores = d.cores;
  fill_numbers(t, machine_numbers(d.cpu));
  return t;
}

Target detect_host() {
  Target t;
  t.name = "host";
#if defined(__aarch64__)
  t.triple = "aarch64-linux-gnu";
#else
  t.triple = "x86_64-linux-gnu";
#endif
  const CpuId id = read_cpuid();
  t.cpu = llvm_cpu(id);
  t.features = llvm_features(id);
  const MachineNumbers& numbers = machine_numbers(t.cpu);
  fill_numbers(t, numbers);
  const Topology topology = read_topology();
  t.cores = topology.cores;
  if (id.base_ghz > 0) {
    t.ghz = id.base_ghz;
  } else if (topology.ghz > 0) {
    t.ghz = topology.ghz;
  }
  if (!topology.caches.empty()) t.caches.clear();
  for (const CacheSize& c : topology.caches) {
    const int level = std::clamp(c.level, 1, 3);
    t.caches.push_back(
        {c.level, c.bytes, c.line_bytes, c.shared_by, numbers.cache_bytes_per_cycle[level - 1]});
  }
  return t;
}

// This machine without what is wider than AVX2; another one is described as x86-64-avx2.
Target host_limited_to_avx2() {
  Target t = *find("x86-64-avx2");
  t.name = "host-avx2";
  const Target& machine = host();
  if (!runs_here(t)) return t;
  t.cores = machine.cores;
  t.ghz = machine.ghz;
  const std::vector<Cache> described = t.caches;
  t.caches = machine.caches;
  for (Cache& cache : t.caches) {
    for (const Cache& other : described)
      if (other.level == cache.level) cache.bytes_per_cycle = other.bytes_per_cycle;
  }
  return t;
}

std::string size_text(int64_t bytes) {
  if (bytes % (1024 * 1024) == 0) return fmt::format("{}M", bytes / (1024 * 1024));
  return fmt::format("{}K", bytes / 1024);
}

// Parses what size_text returns; 0 for any other text.
int64_t parse_size(std::string_view text) {
  int64_t number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc() || text.data() + text.size() - end != 1) return 0;
  if (number <= 0 || number >= int64_t{1} << 40) return 0;
  return *end == 'K' ? number << 10 : *end == 'M' ? number << 20 : 0;
}

// ISA-CPU-CORESc-L1-L2-L3, where the CPU's name may have dashes, too.
struct KeyParts {
  std::string isa, cpu;
  int cores = 0;
  std::vector<int64_t> caches;
};
KeyParts parse_key(std::string_view key) {
  KeyParts parts;
  const auto cut = [&] {  // the part behind the last dash
    const size_t dash = key.rfind('-');
    const std::string_view part = dash == key.npos ? std::string_view() : key.substr(dash + 1);
    key = key.substr(0, dash == key.npos ? 0 : dash);
    return part;
  };
  std::string_view part = cut();
  for (; parse_size(part) > 0; part = cut())
    parts.caches.insert(parts.caches.begin(), parse_size(part));
  const auto [end, status] = std::from_chars(part.data(), part.data() + part.size(), parts.cores);
  const size_t dash = key.find('-');
  if (status != std::errc() || std::string_view(end, part.end()) != "c" || dash == key.npos)
    return {};
  parts.isa = key.substr(0, dash);
  parts.cpu = key.substr(dash + 1);
  return parts;
}

std::string isa_name(const Target& t) {
  if (t.triple.starts_with("aarch64")) return "neon";
  return machine_numbers(t.cpu).isa;
}

}  // namespace

const Target& host() {
  static const Target target = detect_host();
  return target;
}

std::vector<std::string> names() {
  std::vector<std::string> result = {"host", "host-avx2"};
  for (const Description& d : descriptions()) result.emplace_back(d.name);
  return result;
}

Result<Target> find(std::string_view name) {
  if (name == "host") return host();
  if (name == "host-avx2") return host_limited_to_avx2();
  for (const Description& d : descriptions()) {
    if (name == d.name) return from_description(d);
  }
  return error(Code::kNotFound, "unknown device '{}', expected one of: {}", name,
               fmt::join(names(), ", "));
}

bool is_part_of(const Target& part, const Target& machine) {
  return part.name.starts_with("host") && part.triple == machine.triple &&
         std::ranges::all_of(part.features, [&](const std::string& feature) {
           return feature.starts_with("-") ||
                  std::ranges::find(machine.features, feature) != machine.features.end();
         });
}

bool runs_here(const Target& target) { return is_part_of(target, host()); }

Result<Target> find_here(std::string_view name) {
  HONE_ASSIGN_OR_RETURN(Target target, find(name));
  if (runs_here(target)) return target;
  return error(
      Code::kUnsupported,
      "device {} cannot be measured here, only compiled for; expected host or a part of it", name);
}

std::string device_key(const Target& target) {
  std::string key = fmt::format("{}-{}-{}c", isa_name(target), target.cpu, target.cores);
  for (const Cache& c : target.caches) key += "-" + size_text(c.bytes);
  return key;
}

Result<Target> of_key(std::string_view key) {
  for (const std::string& name : names()) {
    HONE_ASSIGN_OR_RETURN(Target named, find(name));
    if (device_key(named) == key) return named;
  }
  const KeyParts parts = parse_key(key);
  const MachineNumbers& numbers = machine_numbers(parts.cpu);
  if (parts.cores < 1 || numbers.cpu != parts.cpu || numbers.isa != parts.isa)
    return error(Code::kUnsupported, "device {} is not described here (hone devices)", key);
  Target t;
  t.triple = "x86_64-linux-gnu";
  for (const Description& d : descriptions()) {
    if (machine_numbers(d.cpu).isa == parts.isa) t = from_description(d);
  }
  t.name = key;
  t.cpu = parts.cpu;
  t.cores = parts.cores;
  fill_numbers(t, numbers);
  const Cache last = t.caches.back();
  t.caches.resize(parts.caches.size(), last);
  for (size_t i = 0; i < t.caches.size(); ++i) {
    t.caches[i].level = static_cast<int>(i) + 1;
    t.caches[i].bytes = parts.caches[i];
    t.caches[i].shared_by = std::min(t.caches[i].shared_by, t.cores);
  }
  return t;
}

std::string describe(const Target& t) {
  std::string text = fmt::format("name: {}\nkey: {}\ntriple: {}\ncpu: {}\n", t.name, device_key(t),
                                 t.triple, t.cpu);
  std::vector<std::string> present;
  for (const std::string& f : t.features) {
    if (f.starts_with("+")) present.push_back(f.substr(1));
  }
  text += fmt::format("features: {}\n", fmt::join(present, " "));
  text += fmt::format("cores: {} at {:.2f} GHz\n", t.cores, t.ghz);
  text += fmt::format(
      "vectors: {} registers of {} bytes, {} FMA per cycle, latency {}, {} loads per cycle\n",
      t.vector_registers, t.vector_bytes, t.fma_per_cycle, t.fma_latency, t.loads_per_cycle);
  text += fmt::format("masked memory: {}\nbroadcast operand: {}\n", t.masked_memory ? "yes" : "no",
                      t.broadcast_operand ? "yes" : "no");
  for (const Cache& c : t.caches) {
    text += fmt::format("L{}: {} bytes, lines of {}, shared by {}, {} bytes per cycle\n", c.level,
                        c.bytes, c.line_bytes, c.shared_by, c.bytes_per_cycle);
  }
  text += fmt::format("memory: {} bytes per cycle\n", t.memory_bytes_per_cycle);
  return text;
}

}  // namespace hone::target
