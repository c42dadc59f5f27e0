#include "hone/target/cpu_devices.h"

#include <algorithm>

#include "hone/base/status.h"
#include "hone/target/arm_id.h"
#include "hone/target/cpuid.h"
#include "hone/target/key_text.h"
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
      {"neoverse-n1", "aarch64-linux-gnu", "neoverse-n1", {"+neon"}, 16},
      {"neoverse-v1", "aarch64-linux-gnu", "neoverse-v1", {"+neon"}, 16},
      {"cortex-a72", "aarch64-linux-gnu", "cortex-a72", {"+neon"}, 4},
      {"cortex-a53", "aarch64-linux-gnu", "cortex-a53", {"+neon"}, 4},
  };
  return all;
}

void fill_numbers(Cpu& t, const MachineNumbers& m) {
  t.vector_bytes = m.vector_bytes;
  t.vector_registers = m.vector_registers;
  t.masked_memory = m.masked_memory;
  t.broadcast_operand = m.broadcast_operand;
  t.fma_per_cycle = m.fma_per_cycle;
  t.fma_latency = m.fma_latency;
  t.loads_per_cycle = m.loads_per_cycle;
  t.memory_bytes_per_cycle = m.memory_bytes_per_cycle;
  t.caches.clear();
  for (int level = 1; level <= 3 && m.cache_bytes[level - 1] > 0; ++level) {
    t.caches.push_back({level, m.cache_bytes[level - 1], 64, level == 3 ? m.l3_shared_by : 1,
                        m.cache_bytes_per_cycle[level - 1]});
  }
}

Cpu from_description(const Description& d) {
  Cpu cpu{.triple = d.triple, .model = d.cpu, .features = d.features, .cores = d.cores};
  fill_numbers(cpu, machine_numbers(d.cpu));
  return cpu;
}

// ISA-CPU-CORESc-L1-L2-L3, where the CPU's name may have dashes, too.
struct KeyParts {
  std::string isa, cpu;
  int cores = 0;
  std::vector<int64_t> caches;
};
KeyParts parse_key(std::string_view key) {
  KeyParts parts;
  std::string_view part = cut_last_part(key);
  for (; parse_size(part) > 0; part = cut_last_part(key))
    parts.caches.insert(parts.caches.begin(), parse_size(part));
  parts.cores = parse_count(part, "c");
  const size_t dash = key.find('-');
  if (parts.cores == 0 || dash == key.npos) return {};
  parts.isa = key.substr(0, dash);
  parts.cpu = key.substr(dash + 1);
  return parts;
}

std::string isa_name(const Cpu& cpu) {
  if (cpu.triple.starts_with("aarch64")) return "neon";
  return machine_numbers(cpu.model).isa;
}

}  // namespace

Cpu detect_cpu() {
  Cpu cpu;
#if defined(__aarch64__)
  cpu.triple = "aarch64-linux-gnu";
#else
  cpu.triple = "x86_64-linux-gnu";
#endif
  const CpuId id = read_cpuid();
  const bool is_arm = cpu.triple.starts_with("aarch64");
  cpu.model = is_arm ? arm_cpu(read_midr()) : llvm_cpu(id);
  cpu.features = is_arm ? std::vector<std::string>{"+neon"} : llvm_features(id);
  const MachineNumbers& numbers = machine_numbers(cpu.model);
  fill_numbers(cpu, numbers);
  const Topology topology = read_topology();
  cpu.cores = topology.cores;
  if (id.base_ghz > 0) {
    cpu.ghz = id.base_ghz;
  } else if (topology.ghz > 0) {
    cpu.ghz = topology.ghz;
  }
  if (!topology.caches.empty()) cpu.caches.clear();
  for (const CacheSize& c : topology.caches) {
    const int level = std::clamp(c.level, 1, 3);
    cpu.caches.push_back(
        {c.level, c.bytes, c.line_bytes, c.shared_by, numbers.cache_bytes_per_cycle[level - 1]});
  }
  return cpu;
}

std::vector<std::string> described_cpus() {
  std::vector<std::string> names;
  for (const Description& d : descriptions()) names.emplace_back(d.name);
  return names;
}

std::optional<Cpu> described_cpu(std::string_view name) {
  for (const Description& d : descriptions()) {
    if (name == d.name) return from_description(d);
  }
  return std::nullopt;
}

bool has_features(const Cpu& machine, const Cpu& code) {
  return code.triple == machine.triple &&
         std::ranges::all_of(code.features, [&](const std::string& feature) {
           return feature.starts_with("-") ||
                  std::ranges::find(machine.features, feature) != machine.features.end();
         });
}

Cpu limited_to_avx2(const Cpu& machine) {
  Cpu cpu = *described_cpu("x86-64-avx2");
  if (!has_features(machine, cpu)) return cpu;
  cpu.cores = machine.cores;
  cpu.ghz = machine.ghz;
  const std::vector<Cache> described = cpu.caches;
  cpu.caches = machine.caches;
  for (Cache& cache : cpu.caches) {
    for (const Cache& other : described)
      if (other.level == cache.level) cache.bytes_per_cycle = other.bytes_per_cycle;
  }
  return cpu;
}

std::string device_key(const Cpu& cpu) {
  std::string key = fmt::format("{}-{}-{}c", isa_name(cpu), cpu.model, cpu.cores);
  for (const Cache& c : cpu.caches) key += "-" + size_text(c.bytes);
  return key;
}

std::optional<Cpu> cpu_of_key(std::string_view key) {
  const KeyParts parts = parse_key(key);
  const MachineNumbers& numbers = machine_numbers(parts.cpu);
  if (parts.cores < 1 || numbers.cpu != parts.cpu || numbers.isa != parts.isa) return std::nullopt;
  Cpu cpu;
  cpu.triple = "x86_64-linux-gnu";
  for (const Description& d : descriptions()) {
    if (machine_numbers(d.cpu).isa == parts.isa) cpu = from_description(d);
  }
  cpu.model = parts.cpu;
  cpu.cores = parts.cores;
  fill_numbers(cpu, numbers);
  const Cache last = cpu.caches.back();
  cpu.caches.resize(parts.caches.size(), last);
  for (size_t i = 0; i < cpu.caches.size(); ++i) {
    cpu.caches[i].level = static_cast<int>(i) + 1;
    cpu.caches[i].bytes = parts.caches[i];
    cpu.caches[i].shared_by = std::min(cpu.caches[i].shared_by, cpu.cores);
  }
  return cpu;
}

std::string describe(const Cpu& cpu) {
  std::string text = fmt::format("triple: {}\ncpu: {}\n", cpu.triple, cpu.model);
  std::vector<std::string> present;
  for (const std::string& f : cpu.features) {
    if (f.starts_with("+")) present.push_back(f.substr(1));
  }
  text += fmt::format("features: {}\n", fmt::join(present, " "));
  text += fmt::format("cores: {} at {:.2f} GHz\n", cpu.cores, cpu.ghz);
  text += fmt::format(
      "vectors: {} registers of {} bytes, {} FMA per cycle, latency {}, {} loads per cycle\n",
      cpu.vector_registers, cpu.vector_bytes, cpu.fma_per_cycle, cpu.fma_latency,
      cpu.loads_per_cycle);
  text += fmt::format("masked memory: {}\nbroadcast operand: {}\n",
                      cpu.masked_memory ? "yes" : "no", cpu.broadcast_operand ? "yes" : "no");
  for (const Cache& c : cpu.caches) {
    text += fmt::format("L{}: {} bytes, lines of {}, shared by {}, {} bytes per cycle\n", c.level,
                        c.bytes, c.line_bytes, c.shared_by, c.bytes_per_cycle);
  }
  text += fmt::format("memory: {} bytes per cycle\n", cpu.memory_bytes_per_cycle);
  return text;
}

}  // namespace hone::target
