#include "hone/analysis/loop_body.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hone::analysis {
namespace {

using schedule::Annotation;

// Load or store slots per element of a strided vector access.
constexpr double kGatherSlots = 1.6, kScatterSlots = 1.2;

// The lanes run along two loops that were fused: this is not the last one.
bool is_outer_digit(const Nest& nest, size_t loop) {
  return loop + 1 < nest.loops.size() && nest.loops[loop].annotation == Annotation::kVectorize &&
         nest.loops[loop + 1].annotation == Annotation::kVectorize;
}

// Share of the vectors along loop `lane` that begin in one cache line and end in the next: each
// costs twice.
double split_share(const Nest& nest, const NestAccess& access, size_t lane, int lanes) {
  const int64_t width = std::min<int64_t>(nest.loops[lane].extent, lanes) * access.element_bytes;
  int64_t step = std::gcd<int64_t>(kLineBytes, width);  // between the vectors' beginnings
  for (size_t i = 0; i < nest.loops.size(); ++i) {
    if (i != lane) step = std::gcd(step, access.stride(i) * access.element_bytes);
  }
  int64_t splits = 0;
  for (int64_t at = 0; at < kLineBytes; at += step) splits += at + width > kLineBytes ? 1 : 0;
  return static_cast<double>(splits * step) / kLineBytes;
}

// Returns what decides how code runs the loop along the lanes: it has the digits of all loops that
// were fused to it, and elements are as wide as those of the result.
target::LoopFacts lane_facts(const Nest& nest) {
  const NestAccess& write = nest.accesses.back();
  target::LoopFacts facts{.element_bytes = write.element_bytes, .extent = 1};
  size_t lane = nest.loops.size();
  for (; lane > 0 && nest.loops[lane - 1].annotation == Annotation::kVectorize; --lane)
    *facts.extent *= nest.loops[lane - 1].extent;
  facts.vectorizable = lane < nest.loops.size();
  if (!facts.vectorizable || lane <= nest.outer) return facts;
  const NestLoop &row = nest.loops[lane - 1], &last = nest.loops.back();
  const bool stores_each = !row.reduce && !last.reduce && lane + 1 == nest.loops.size();
  if (row.annotation != Annotation::kUnroll || !stores_each) return facts;
  facts.rows = row.extent;
  facts.row_stride = write.stride(lane - 1);
  facts.lane_stride = write.stride(lane);
  return facts;
}

}  // namespace

double vector_count(const NestLoop& loop, int lanes) {
  return loop.annotation == Annotation::kVectorize
             ? std::ceil(static_cast<double>(loop.extent) / lanes)
             : static_cast<double>(loop.extent);
}

Body find_body(const Nest& nest, const target::Cpu& target) {
  Body body;
  body.plan = target::plan_loop(lane_facts(nest), target);
  body.is_vector = !nest.loops.empty() && nest.loops.back().annotation == Annotation::kVectorize;
  body.fused = nest.loops.size() > 1 && is_outer_digit(nest, nest.loops.size() - 2);
  body.first = nest.loops.size();
  while (body.first > nest.outer) {
    const NestLoop& loop = nest.loops[body.first - 1];
    const bool flat = loop.annotation == Annotation::kUnroll ||
                      loop.annotation == Annotation::kVectorize || loop.extent == 1;
    if (!flat) break;
    --body.first;
    body.vectors *= vector_count(loop, body.plan.lanes);
  }
  return body;
}

double split_factor(const Nest& nest, const NestAccess& access, int lanes) {
  const size_t last = nest.loops.size() - 1;
  if (nest.loops.empty() || nest.loops[last].annotation != Annotation::kVectorize ||
      !access.moves_with(last))
    return 1;
  return access.stride(last) == 1 ? 1 + split_share(nest, access, last, lanes) : INFINITY;
}

bool reads_by_parts(const Nest& nest, const NestAccess& access) {
  const size_t depth = nest.loops.size();
  return depth > 1 && is_outer_digit(nest, depth - 2) && access.moves_with(depth - 2) &&
         !access.moves_with(depth - 1);
}

double terms_of_vector(const Nest& nest, const NestAccess& access, const Body& body) {
  double terms = 1;
  for (size_t i = body.first; i < nest.loops.size(); ++i) {
    if (nest.loops[i].reduce && std::abs(access.stride(i)) == 1)
      terms *= static_cast<double>(nest.loops[i].extent);
  }
  return terms;
}

double access_slots(const Nest& nest, const NestAccess& access, const Body& body) {
  const int lanes = body.plan.lanes;
  double slots = access.reads;
  if (access.write && body.is_square()) {
    for (size_t i = body.first; i + 1 < nest.loops.size(); ++i)
      slots *= static_cast<double>(nest.loops[i].extent);
    return slots * (1 + split_share(nest, access, nest.loops.size() - 2, lanes));
  }
  for (size_t i = body.first; i < nest.loops.size(); ++i) {
    const NestLoop& loop = nest.loops[i];
    if (loop.extent == 1 || !access.moves_with(i)) continue;
    if (loop.annotation != Annotation::kVectorize) {
      slots *= static_cast<double>(loop.extent);
      continue;
    }
    if (is_outer_digit(nest, i)) continue;  // reads the same vector, or a permutation of one
    const int64_t stride = access.stride(i);
    const double n = std::ceil(static_cast<double>(loop.extent) / lanes);
    const double strided =
        (access.write ? kScatterSlots : kGatherSlots) * static_cast<double>(loop.extent);
    slots *= stride == 1 ? n * (1 + split_share(nest, access, i, lanes)) : strided;
  }
  return slots;
}

double distinct_vectors(const Nest& nest, const NestAccess& access, const Body& body,
                        double elements) {
  if (nest.loops.empty()) return elements;
  const NestLoop& last = nest.loops.back();
  if (last.annotation != Annotation::kVectorize) return elements;
  const size_t outer = nest.loops.size() - 2;
  if (nest.loops.size() > 1 && is_outer_digit(nest, outer) && access.moves_with(outer))
    elements /= static_cast<double>(nest.loops[outer].extent);
  if (!access.moves_with(nest.loops.size() - 1)) return elements;
  if (std::abs(access.stride(nest.loops.size() - 1)) != 1) return elements;
  return elements / static_cast<double>(last.extent) * vector_count(last, body.plan.lanes);
}

double unshared_additions(const Nest& nest, const Body& body) {
  const NestAccess* read = nullptr;
  for (const NestAccess& access : nest.accesses) {
    if (access.write) continue;
    if (read) return 1;
    read = &access;
  }
  if (!read || nest.ops.fma > 0) return 1;
  double part = 1;
  for (size_t i = body.first; i < nest.loops.size(); ++i) {
    if (!nest.loops[i].reduce || nest.loops[i].extent == 1 ||
        nest.loops[i].annotation == Annotation::kVectorize)
      continue;
    const double elements = read->footprint_without(nest.loops, body.first, i);
    const double columns = distinct_vectors(nest, *read, body, elements) / body.vectors;
    const auto taps = static_cast<double>(nest.loops[i].extent);
    part = std::min(part, (columns * (taps - 1)) + (1 / taps));
  }
  return part;
}

double held_vectors(const Nest& nest, const NestAccess& access, const Body& body) {
  double held = 1;
  for (size_t i = body.first; i < nest.loops.size(); ++i) {
    const bool broadcast = !access.moves_with(i) || nest.loops[i].reduce;
    if (!broadcast) held *= vector_count(nest.loops[i], body.plan.lanes);
  }
  return std::min(held, 8.0);
}

}  // namespace hone::analysis
