// space/rules/gpu/windows.h - a reduction R of windows that slide over an operand, such as a
// depthwise convolution or a pool, inside its pointwise epilogue E (internal to space).
// make_windows.cc finds axes and operands, windows.cc chooses and appends the steps.
#pragma once

#include "hone/space/rules/gpu/usual_values.h"

namespace hone::space {

// One of E's axes. Threads have neighbouring points of it in registers.
struct WindowAxis {
  std::string name, in_sum;  // names of the axis in E and in R
  int64_t extent = 1;
  bool slides = false;  // windows move along it
  DecisionId d_registers;
  DecisionId d_threads;  // if blocks share copies: threads of a block along it
};

// Describes what R reads of one buffer.
struct WindowRead {
  struct Dim {
    std::vector<std::pair<size_t, int64_t>> steps;  // axes that move along it, and how far
    int64_t reach = 0;                              // how far the taps move along it
  };
  std::vector<Dim> dims;
  int64_t element_bytes = 4;
  bool is_row = false;  // neighbouring results read neighbours, and no others
  int64_t apart = 1;    // how far apart they are otherwise; 0: at one place
  // The stage that copies it, with axes and the extent of the last one; "": none.
  std::string copy;
  std::vector<std::string> copy_axes;
  int64_t row = 1;
};

// for blocks, in parallel:
//   if it shares: for threads: copies of what the block's windows cover and of their factors, in
//   shared memory
//   for threads:  R, in registers: for taps: a tile of results, in straight-line code;  E
// What neighbouring windows have in common is loaded once, as all taps are straight-line code.
// Without copies, threads have the tiles in the order of the results, whatever the extents are.
// With them, a block has a box of tiles.
class Windows : public Group {
 public:
  std::string epilogue, reduction;
  std::vector<WindowAxis> axes;     // in the order of the results, the contiguous one last
  std::vector<compute::Axis> taps;  // R's reduce axes
  std::vector<WindowRead> reads;    // R's operands; the first one is what windows slide over
  bool shares = false;              // blocks copy what R reads to shared memory
  int64_t result_bytes = 4;
  target::Gpu gpu;
  DecisionId d_threads;  // threads of a block without copies
  UsualValues usual;

  [[nodiscard]] bool legal(const Choice& choice) const override;
  void set_default(MutableChoice& choice) const override { usual.set(choice); }
  void append_steps(const Choice& choice, schedule::Steps& steps) const override;
  [[nodiscard]] int64_t num_taps() const;
  [[nodiscard]] int64_t results() const;
  // Chooses among all tiles by an estimate of the time that they take.
  void find_usual(const std::vector<Decision>& decisions);

 private:
  // Return the points of a thread's tile, all of its threads, and those of a block.
  [[nodiscard]] int64_t points(const Choice& choice) const;
  [[nodiscard]] int64_t tiles(const Choice& choice) const;
  [[nodiscard]] int64_t threads(const Choice& choice) const;
  [[nodiscard]] int64_t registers(const Choice& choice) const;
  // Returns the elements of a thread's tile that a row of taps needs.
  [[nodiscard]] int64_t row_elements(const WindowRead& read, const Choice& choice) const;
  [[nodiscard]] double traffic_cycles() const;
  // Returns how many points along an axis a block with copies has.
  [[nodiscard]] int64_t block_points(const WindowAxis& axis, const Choice& choice) const;
  // Returns the elements of a read that so many points of each axis need.
  using Points = std::function<int64_t(const WindowAxis&)>;
  [[nodiscard]] int64_t elements(const WindowRead& read, const Points& points) const;
  [[nodiscard]] int64_t box_elements(const WindowRead& read, const Choice& choice) const;
  // Returns how many neighbours of a copy a thread copies at once.
  [[nodiscard]] int64_t box_vector(const WindowRead& read, const Choice& choice) const;
  [[nodiscard]] int64_t shared_bytes(const Choice& choice) const;
  // Returns whether so many neighbours along the column are stored as one vector.
  [[nodiscard]] bool is_vector(int64_t lanes) const;
  [[nodiscard]] double estimate(const Choice& choice) const;
  struct Loops {
    std::string block, thread;  // the grid, and the innermost loop over threads
  };
  Loops append_epilogue(const Choice& choice, schedule::Steps& steps) const;
  // Unrolls the loops over a thread's tile, or vectorizes the last one.
  void append_tile(const std::string& stage, const std::vector<std::string>& tile,
                   const Choice& choice, schedule::Steps& steps) const;
  void append_reduction(const std::string& thread, const Choice& choice,
                        schedule::Steps& steps) const;
};

}  // namespace hone::space
