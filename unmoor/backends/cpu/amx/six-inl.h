// Six products of bfloat16 parts for one of float32, over any kind of tiles. Included once a kind.
#pragma once

#include "unmoor/backends/cpu/amx/tiles.h"

namespace unmoor::cpu {

// `Tiles` has eight registers of 16 rows of 64 bytes:
//   configure(), release();
//   zero<t>(), store<t>(to, bytes from row to row): of sums, registers 0 to 3 for 2 x 2 tiles.
//   load<t>(from, bytes from row to row): of operands, 4 and 5 for A, 6 and 7 for B.
//   dot<row, column>(): register 2 * row + column += register 4 + row times register 6 + column, as TDPBF16PS does.
template <class Tiles>
struct SixProducts {
  static constexpr size_t sum_row = set_rows * sizeof(float);
  static constexpr size_t part_row = set_depth * sizeof(uint16_t);
  enum Part : size_t { High, Middle, Low };

  static void load_a(const uint16_t* set, Part part) {
    Tiles::template load<4>(set + 2 * part * tile_values, part_row);
    Tiles::template load<5>(set + (2 * part + 1) * tile_values, part_row);
  }
  static void load_b(const uint16_t* set, Part part) {
    Tiles::template load<6>(set + 2 * part * tile_values, part_row);
    Tiles::template load<7>(set + (2 * part + 1) * tile_values, part_row);
  }
  static void dots() {
    Tiles::template dot<0, 0>();
    Tiles::template dot<0, 1>();
    Tiles::template dot<1, 0>();
    Tiles::template dot<1, 1>();
  }

  // Five of the six, in an order in which only one side changes.
  static void small_products(const uint16_t* a, const uint16_t* b) {
    load_a(a, Low);
    load_b(b, High);
    dots();
    load_a(a, Middle);
    dots();
    load_b(b, Middle);
    dots();
    load_a(a, High);
    dots();
    load_b(b, Low);
    dots();
  }
  static void large_product(const uint16_t* a, const uint16_t* b) {
    load_a(a, High);
    load_b(b, High);
    dots();
  }

  static void zero() {
    Tiles::template zero<0>();
    Tiles::template zero<1>();
    Tiles::template zero<2>();
    Tiles::template zero<3>();
  }
  static void store(float* sums) {
    Tiles::template store<0>(sums, sum_row);
    Tiles::template store<1>(sums + 16, sum_row);
    Tiles::template store<2>(sums + 16 * set_rows, sum_row);
    Tiles::template store<3>(sums + 16 * set_rows + 16, sum_row);
  }

  // Lines [begin, end) of what is to come, from four pages in turn: see gemm.cpp.
  static void prefetch(const TilePart& p, size_t begin, size_t end) {
    const auto start = reinterpret_cast<uintptr_t>(p.prefetch);
    for (size_t i = begin; i < end; ++i) {
      const size_t page = i / 256 * 4 + i % 4;
      __builtin_prefetch(reinterpret_cast<const char*>(start + page * 4096 + i / 4 % 64 * 64), 0, 2);
    }
  }

  static void multiply(const TilePart& p) {
    const size_t lines = p.prefetch_bytes / 64;
    const size_t share = p.blocks * p.steps == 0 ? 0 : lines / (p.blocks * p.steps) + 1;
    size_t fetched = 0;
    for (size_t block = 0; block < p.blocks; ++block) {
      const uint16_t* const a = p.a + block * p.a_step;
      zero();
      // Small products of all steps before the large ones: only those are rounded at the size of the result.
      for (size_t s = 0; s < p.steps; ++s) {
        const size_t next = fetched + share < lines ? fetched + share : lines;
        prefetch(p, fetched, next);
        fetched = next;
        small_products(a + s * set_values, p.b + s * set_values);
      }
      for (size_t s = 0; s < p.steps; ++s) large_product(a + s * set_values, p.b + s * set_values);
      store(p.sums + block * sum_values);
    }
  }

  static constexpr TileLoops loops(const char* name) { return {name, Tiles::configure, multiply, Tiles::release}; }
};

}  // namespace unmoor::cpu
