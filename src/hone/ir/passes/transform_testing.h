// ir/passes/transform_testing.h - Winograd's transforms in one dimension as programs, for tests.
#pragma once

#include <string>

#include "hone/ir/pass_testing.h"

namespace hone::ir {

struct KnownMatrix {
  int rows, columns;
  const char* values;
};
// F(4, 3): the data's transform has pairs of rows, the inverse transform has pairs of columns.
inline constexpr KnownMatrix kDataOf4 = {
    6, 6,
    "4.0, 0.0, -5.0, 0.0, 1.0, 0.0, 0.0, -4.0, -4.0, 1.0, 1.0, 0.0, 0.0, 4.0, -4.0, -1.0, 1.0, "
    "0.0, 0.0, -2.0, -1.0, 2.0, 1.0, 0.0, 0.0, 2.0, -1.0, -2.0, 1.0, 0.0, 0.0, 4.0, 0.0, -5.0, "
    "0.0, 1.0"};
inline constexpr KnownMatrix kBackOf4 = {
    4, 6,
    "1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0, -1.0, 2.0, -2.0, 0.0, 0.0, 1.0, 1.0, 4.0, 4.0, 0.0, "
    "0.0, 1.0, -1.0, 8.0, -8.0, 1.0"};
inline constexpr KnownMatrix kDataOf2 = {
    4, 4, "1.0, 0.0, -1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, -1.0, 1.0, 0.0, 0.0, 1.0, 0.0, -1.0"};

// Returns the text of: sum over i < columns of B[row, i] * d[t, i, r, v].
inline std::string known_sum_text(int columns, const std::string& row = "x") {
  std::string text;
  for (int i = 0; i < columns; ++i) {
    const std::string place = std::to_string(i);
    text += (i > 0 ? " + B[" : "B[") + row + ", " + place + "] * d[t, " + place + ", r, v]";
  }
  return text;
}

// Returns the text of loops around y[t, x, r, v] = value.
inline std::string transform_loops(int rows, const std::string& value,
                                   const std::string& kinds = "unrolled unrolled") {
  const size_t space = kinds.find(' ');
  return kinds.substr(0, space) + " x in 0.." + std::to_string(rows) + " { " +
         kinds.substr(space + 1) + " r in 0..5 { vectorized v in 0..16 { y[t, x, r, v] = " + value +
         " } } }";
}

// Makes a program with the matrix as B, whose `body` runs for t in 0..`tiles`.
inline Program transform_program(const KnownMatrix& matrix, const std::string& body,
                                 int tiles = 3) {
  const std::string shape = "[" + std::to_string(tiles) + ", 6, 5, 16]";
  return testing::parsed("program transform {\n  constant B: f32[" + std::to_string(matrix.rows) +
                         ", " + std::to_string(matrix.columns) + "] = {" + matrix.values +
                         "}\n  input d: f32" + shape + "\n  output y: f32" + shape +
                         "\n  phase {\n    for t in 0.." + std::to_string(tiles) + " {\n" + body +
                         "\n    }\n  }\n}\n");
}
inline Program transform_program(const KnownMatrix& matrix) {
  return transform_program(matrix, transform_loops(matrix.rows, known_sum_text(matrix.columns)));
}

}  // namespace hone::ir
