// space/rules/gpu/block_rows.h - rows that blocks reduce, and the schedule of their group (internal
// to space). Each thread reduces a part of a row, in registers; the parts meet in shared memory, or
// where a warp has a row its lanes exchange them.
#pragma once

#include "hone/space/sketch.h"

namespace hone::space {

// for tiles of rows, in parallel:
//   each reduction: for threads: parts;  for fewer threads: joined;  for rows: the result
//   E: for rows, for threads: the elements of the row
// Where the terms of a row are neighbours in memory, neighbouring threads have neighbouring vectors
// of terms; else neighbouring threads have neighbouring rows. By lanes:
//   each reduction: for warps, for lanes: parts;  for warps: the result, of which each lane has a
//   copy E: for warps, for lanes: the elements of the row
class GpuRows : public Group {
 public:
  // A reduction, in the order of the task.
  struct Sum {
    std::string stage, axis;        // the axis whose terms threads share
    std::vector<std::string> rest;  // its other reduce axes
    int64_t extent = 1;
    bool is_contiguous = false;  // neighbouring terms are neighbours in memory
    int divided = 0;             // stages that have parts of it already
    bool is_private = false;     // only E reads the result, so each of its threads joins the parts
  };
  std::string epilogue;
  std::vector<std::string> outer;    // names of the axes of rows that the grid divides
  std::string tiled;                 // that of which a block has several, one of them
  std::vector<std::string> inner;    // axes of rows that a thread has whole: it reads terms once
  int64_t last = 1, rows = 1;        // extent of the tiled one, and of all outer ones
  std::vector<std::string> row;      // E's other axes, that of neighbouring elements last
  int64_t row_extent = 1;            // extent of the last one
  bool rows_are_neighbours = false;  // neighbouring results belong to neighbouring rows
  std::vector<Sum> sums;
  int64_t length = 1;  // terms of the longest row
  int64_t sms = 1, most_threads = 1024;
  DecisionId d_rows, d_threads, d_vector;
  DecisionId d_lanes;  // a switch: a warp has a row, and its lanes exchange their parts

  [[nodiscard]] bool is_contiguous() const;
  [[nodiscard]] bool legal(const Choice& choice) const override;
  void set_default(MutableChoice& choice) const override;
  void append_steps(const Choice& choice, schedule::Steps& steps) const override;

 private:
  // The names of what a reduction is divided into, with their reduce axes.
  struct Parts {
    std::string sum, sum_axis;      // the terms of a thread
    std::string part, part_axis;    // one for each thread
    std::string joined, join_axis;  // some of a row's parts together; "" if there is none
    std::string left;               // the reduce axis of the result
  };
  [[nodiscard]] Parts parts_of(const Sum& sum, const Choice& choice) const;
  std::string append_epilogue(const Choice& choice, schedule::Steps& steps) const;
  void append_sum(const Sum& sum, const Choice& choice, const std::string& block,
                  schedule::Steps& steps) const;
  void append_sum_of_lanes(const Sum& sum, const Choice& choice, const std::string& block,
                           schedule::Steps& steps) const;
  // A stage is computed by the block, by threads along the `bound` loops, in shared memory or, by
  // warps and their lanes, in their registers.
  void compute_in_block(const std::string& stage, const std::vector<std::string>& bound,
                        const std::vector<std::string>& inside, const std::string& block,
                        bool by_lanes, schedule::Steps& steps) const;
  void append_terms(const Sum& sum, const Parts& parts, const std::string& thread,
                    const Choice& choice, schedule::Steps& steps) const;
};

}  // namespace hone::space
