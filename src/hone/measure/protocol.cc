#include "hone/measure/protocol.h"

#include "hone/base/wire.h"

namespace hone::measure {
namespace {

using wire::Reader;
using wire::Writer;

template <typename T>
Result<T> checked(const Reader& r, T value) {
  if (!r.done()) return invalid("a message of the worker's protocol is too short or too long");
  return value;
}

bool is_role(ir::Role role) { return role <= ir::Role::kOutput; }

}  // namespace

std::string encode(const OperandsMessage& m) {
  Writer w;
  w.put(m.id).put(m.layout.total_bytes).put(uint64_t{m.layout.entries.size()});
  for (const auto& e : m.layout.entries) w.put(e.role).put(e.bytes).put(e.offset);
  w.put(uint64_t{m.layout.expected.size()});
  for (const auto& e : m.layout.expected) {
    w.put(e.operand)
        .put(e.dtype)
        .put(e.num_places)
        .put(e.places_offset)
        .put(e.num_values)
        .put(e.values_offset);
  }
  return w.bytes();
}

Result<OperandsMessage> decode_operands(std::string_view bytes) {
  Reader r(bytes);
  OperandsMessage m;
  m.id = r.get<uint64_t>();
  m.layout.total_bytes = r.get<int64_t>();
  m.layout.entries.resize(r.get_count());
  for (auto& e : m.layout.entries) {
    e.role = r.get<ir::Role>(), e.bytes = r.get<int64_t>(), e.offset = r.get<int64_t>();
    if (!is_role(e.role) || e.bytes < 0) return invalid("a bad operand in a message");
  }
  m.layout.expected.resize(r.get_count());
  for (auto& e : m.layout.expected) {
    e.operand = r.get<int>(), e.dtype = r.get<DType>();
    e.num_places = r.get<int64_t>(), e.places_offset = r.get<int64_t>();
    e.num_values = r.get<int64_t>(), e.values_offset = r.get<int64_t>();
  }
  return checked(r, std::move(m));
}

namespace {

void put_candidate(Writer& w, const Job& j) {
  const backend::Executable& e = j.executable;
  w.put(j.id).put(e.kind).put(e.code.str()).put(e.prepare_code.str());
  w.put(uint64_t{e.entries.size()});
  for (const auto& p : e.entries)
    w.put(p.symbol).put(p.num_tiles).put(p.prepare).put(p.threads).put(p.shared_bytes);
  w.put(e.scratch_bytes).put(uint64_t{j.arguments.size()});
  for (const auto& a : j.arguments) w.put(a.role).put(a.bytes).put(a.operand);
}

Status get_candidate(Reader& r, Job& j) {
  j.id = r.get<uint64_t>();
  backend::Executable& e = j.executable;
  e.kind = r.get<target::Kind>();
  if (static_cast<int>(e.kind) >= target::kKinds) return invalid("a bad kind in a message");
  e.code = r.get_string(), e.prepare_code = r.get_string();
  e.entries.resize(r.get_count());
  for (auto& p : e.entries) {
    p.symbol = r.get_string(), p.num_tiles = r.get<int64_t>(), p.prepare = r.get<bool>();
    p.threads = r.get<int>(), p.shared_bytes = r.get<int64_t>();
  }
  e.scratch_bytes = r.get<int64_t>();
  j.arguments.resize(r.get_count());
  for (auto& a : j.arguments) {
    a.role = r.get<ir::Role>(), a.bytes = r.get<int64_t>(), a.operand = r.get<int>();
    if (!is_role(a.role)) return invalid("a bad argument in a message");
  }
  return ok_status();
}

void put_samples(Writer& w, const std::vector<double>& samples) {
  w.put(uint64_t{samples.size()});
  for (const double s : samples) w.put(s);
}

std::vector<double> get_samples(Reader& r) {
  std::vector<double> samples(r.get_count());
  for (double& s : samples) s = r.get<double>();
  return samples;
}

}  // namespace

std::string encode_job(const Job& j) {
  Writer w;
  put_candidate(w, j);
  w.put(j.operands ? j.operands->id() : uint64_t{0}).put(j.threads);
  const TimingOptions& t = j.timing;
  w.put(t.sample_seconds).put(t.min_samples).put(t.max_samples).put(t.precision).put(t.max_seconds);
  w.put(t.best).put(t.stop_ratio).put(t.slower_ratio);
  w.put(j.weights).put(j.own_cache_bytes).put(j.tolerance).put(j.count_bounds);
  w.put(j.rival != nullptr);
  if (j.rival == nullptr) return w.bytes();
  put_candidate(w, *j.rival);
  const trial::DuelOptions& d = j.duel;
  w.put(d.sample_seconds).put(d.max_pairs).put(d.max_seconds).put(d.hard_seconds).put(d.decisive);
  w.put(j.swap_memory);
  return w.bytes();
}

Result<JobMessage> decode_job(std::string_view bytes) {
  Reader r(bytes);
  JobMessage m;
  Job& j = m.job;
  HONE_RETURN_IF_ERROR(get_candidate(r, j));
  m.operands = r.get<uint64_t>();
  j.threads = r.get<int>();
  TimingOptions& t = j.timing;
  t.sample_seconds = r.get<double>(), t.min_samples = r.get<int>(), t.max_samples = r.get<int>();
  t.precision = r.get<double>(), t.max_seconds = r.get<double>();
  t.best = r.get<double>(), t.stop_ratio = r.get<double>(), t.slower_ratio = r.get<double>();
  j.weights = r.get<Weights>(), j.own_cache_bytes = r.get<int64_t>();
  j.tolerance = r.get<double>();
  j.count_bounds = r.get<bool>();
  if (r.get<bool>()) {
    auto rival = std::make_shared<Job>();
    HONE_RETURN_IF_ERROR(get_candidate(r, *rival));
    j.rival = std::move(rival);
    trial::DuelOptions& d = j.duel;
    d.sample_seconds = r.get<double>(), d.max_pairs = r.get<int>();
    d.max_seconds = r.get<double>(), d.hard_seconds = r.get<double>(), d.decisive = r.get<double>();
    j.swap_memory = r.get<bool>();
  }
  return checked(r, std::move(m));
}

std::string encode(const Measurement& m) {
  Writer w;
  w.put(m.id).put(m.outcome).put(m.message);
  put_samples(w, m.timing.samples);
  w.put(m.timing.centre)
      .put(m.timing.low)
      .put(m.timing.high)
      .put(m.timing.runs)
      .put(m.timing.stopped_early);
  w.put(m.verified).put(m.error);
  put_samples(w, m.duel.challenger);
  put_samples(w, m.duel.incumbent);
  w.put(m.bounds.has_value());
  if (m.bounds) w.put(m.bounds->scores.memory).put(m.bounds->scores.core).put(m.bounds->source);
  return w.bytes();
}

Result<Measurement> decode_measurement(std::string_view bytes) {
  Reader r(bytes);
  Measurement m;
  m.id = r.get<uint64_t>();
  m.outcome = r.get<trial::Outcome>();
  if (static_cast<size_t>(m.outcome) >= std::size(trial::kOutcomeNames))
    return invalid("a bad outcome in a message");
  m.message = r.get_string();
  m.timing.samples = get_samples(r);
  m.timing.centre = r.get<double>(), m.timing.low = r.get<double>(),
  m.timing.high = r.get<double>();
  m.timing.runs = r.get<int64_t>(), m.timing.stopped_early = r.get<bool>();
  m.verified = r.get<bool>(), m.error = r.get<double>();
  m.duel.challenger = get_samples(r), m.duel.incumbent = get_samples(r);
  if (m.duel.challenger.size() != m.duel.incumbent.size())
    return invalid("a duel without pairs in a message");
  if (r.get<bool>()) {
    trial::CountedBounds& bounds = m.bounds.emplace();
    bounds.scores.memory = r.get<double>(), bounds.scores.core = r.get<double>();
    bounds.source = r.get_string();
  }
  return checked(r, std::move(m));
}

}  // namespace hone::measure
