#include "unmoor/backends/cpu/simd/gemm.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "unmoor/backends/cpu/simd/gemm.cpp"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "unmoor/backends/cpu/simd/few-rows-inl.h"
#include "unmoor/backends/cpu/simd/finish-inl.h"
#include "unmoor/backends/cpu/simd/pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace unmoor::cpu::HWY_NAMESPACE {

// One tile: C[rows][columns] (+)= A piece * B panel over k steps.
struct Tile {
  size_t k;
  const float* a;
  size_t a_stride;  // Of A's rows where they are not packed.
  size_t a_next;    // And how far behind `a` those of the next tile begin, in floats: brought to L1 meanwhile.
  const float* b;
  size_t b_step;
  float* c;
  size_t c_stride;
  size_t columns;
  bool accumulate;
  const Epilogue* epilogue;  // For this tile's place. Null: sums are stored as they are.
  bool is_simple;            // Of the epilogue only column_bias, residual, low and high count.
  const char* prefetch;      // Cache lines to bring to L2 meanwhile: each eight steps, one from each of `pages` pages in turn.
  size_t prefetch_pages;
};

// `a` holds what row i multiplies with at i * stride.
template <size_t R, size_t N>
HWY_INLINE void step(const float* HWY_RESTRICT a, size_t stride, const float* HWY_RESTRICT b, V (&c)[R][N]) {
  V row[N];
  HWY_UNROLL(16)
  for (size_t j = 0; j < N; ++j) row[j] = load(b + j * lanes);
  HWY_UNROLL(16)
  for (size_t i = 0; i < R; ++i) {
    const V x = set(a[i * stride]);
    HWY_UNROLL(16)
    for (size_t j = 0; j < N; ++j) c[i][j] = hn::MulAdd(x, row[j], c[i][j]);
  }
}

// Sums become results. One function for all tiles: they are many.
HWY_NOINLINE void store_tile(const float* sums, size_t rows, size_t vectors, const Tile& t) {
  for (size_t j = 0; j < vectors; ++j) {
    const size_t n = std::min(lanes, t.columns - j * lanes);
    const float* from = sums + j * lanes;
    float* to = t.c + j * lanes;
    if (t.epilogue != nullptr) {
      finish_column(from, vectors * lanes, to, rows, n, t.c_stride, t.accumulate, t.epilogue->at(0, j * lanes, t.c_stride));
      continue;
    }
    for (size_t i = 0; i < rows; ++i, from += vectors * lanes, to += t.c_stride) {
      const V sum = hn::Load(D(), from);
      store_n(t.accumulate ? hn::Add(sum, load_n(to, n)) : sum, to, n);
    }
  }
}

// The most frequent end, straight from the registers: more sums, a bias for each column, a residual, and limits.
template <size_t R, size_t N>
HWY_INLINE void store_simple(V (&c)[R][N], const Tile& t) {
  const auto columns = [&](size_t j) { return j + 1 < N ? lanes : t.columns - (N - 1) * lanes; };
  if (t.accumulate) {
    HWY_UNROLL(16)
    for (size_t i = 0; i < R; ++i) {
      HWY_UNROLL(16)
      for (size_t j = 0; j < N; ++j) c[i][j] = hn::Add(c[i][j], load_n(t.c + i * t.c_stride + j * lanes, columns(j)));
    }
  }
  if (t.epilogue != nullptr) {
    const Epilogue& e = *t.epilogue;
    const V low = set(e.low);
    const V high = set(e.high);
    HWY_UNROLL(16)
    for (size_t j = 0; j < N; ++j) {
      const V bias = e.column_bias == nullptr ? hn::Zero(D()) : load_n(e.column_bias + j * lanes, columns(j));
      HWY_UNROLL(16)
      for (size_t i = 0; i < R; ++i) {
        c[i][j] = hn::Add(c[i][j], bias);
        if (e.residual != nullptr) c[i][j] = hn::Add(c[i][j], load_n(e.residual + i * t.c_stride + j * lanes, columns(j)));
        c[i][j] = at_most(at_least(c[i][j], low), high);
      }
    }
  }
  HWY_UNROLL(16)
  for (size_t i = 0; i < R; ++i) {
    HWY_UNROLL(16)
    for (size_t j = 0; j < N; ++j) store_n(c[i][j], t.c + i * t.c_stride + j * lanes, columns(j));
  }
}

template <bool packed, size_t R, size_t N>
void tile(const Tile& t) {
  const size_t a_stride = packed ? 1 : t.a_stride;
  constexpr size_t a_step = packed ? R : 1;
  V c[R][N];
  HWY_UNROLL(16)
  for (size_t i = 0; i < R; ++i) {
    HWY_UNROLL(16)
    for (size_t j = 0; j < N; ++j) c[i][j] = hn::Zero(D());
  }
  const float* a = t.a;
  const float* b = t.b;
  auto next = reinterpret_cast<uintptr_t>(t.prefetch);  // A number, since there may be nothing to fetch.
  size_t k = 0;
  for (; k + 8 <= t.k; k += 8) {
    for (size_t page = 0; page < t.prefetch_pages; ++page)
      __builtin_prefetch(reinterpret_cast<const char*>(next + page * 4096), 0, 2);
    next += 64;
    if constexpr (!packed) {  // Rows apart are too short for the processor to foresee.
      HWY_UNROLL(16)
      for (size_t i = 0; i < R; ++i) hwy::Prefetch(a + t.a_next + i * a_stride);
    }
    HWY_UNROLL(8)
    for (size_t u = 0; u < 8; ++u) {
      step<R, N>(a, a_stride, b, c);
      a += a_step;
      b += t.b_step;
    }
  }
  for (; k < t.k; ++k) {
    step<R, N>(a, a_stride, b, c);
    a += a_step;
    b += t.b_step;
  }
  if (t.is_simple) {
    store_simple<R, N>(c, t);
    return;
  }
  HWY_ALIGN float sums[R * N * lanes];
  HWY_UNROLL(16)
  for (size_t i = 0; i < R; ++i) {
    HWY_UNROLL(16)
    for (size_t j = 0; j < N; ++j) hn::Store(c[i][j], D(), sums + (i * N + j) * lanes);
  }
  store_tile(sums, R, N, t);
}

using TileLoop = void (*)(const Tile&);
// By rows (1 to 4, then the full tile) and vectors.
template <size_t... N>
struct TileTable {
  static constexpr TileLoop one[] = {tile<true, 1, N>...};
  static constexpr TileLoop two[] = {tile<true, 2, N>...};
  static constexpr TileLoop four[] = {tile<true, 4, N>...};
  static constexpr TileLoop full[] = {tile<true, tile_rows, N>...};
};
// Of unpacked A, by any number of rows.
template <size_t N, class Rows>
struct UnpackedTiles;
template <size_t N, size_t... R>
struct UnpackedTiles<N, std::index_sequence<R...>> {
  static constexpr TileLoop by_rows[] = {tile<false, R + 1, N>...};
};
template <size_t N>
using Unpacked = UnpackedTiles<N, std::make_index_sequence<tile_rows>>;
#if HWY_MAX_BYTES == 64
using Tiles = TileTable<1, 2, 3>;
constexpr const TileLoop* unpacked_tiles[] = {Unpacked<1>::by_rows, Unpacked<2>::by_rows, Unpacked<3>::by_rows};
#else
using Tiles = TileTable<1, 2>;
constexpr const TileLoop* unpacked_tiles[] = {Unpacked<1>::by_rows, Unpacked<2>::by_rows};
#endif

HWY_INLINE TileLoop packed_tile(size_t rows, size_t vectors) {
  if (rows == tile_rows) return Tiles::full[vectors - 1];
  return rows == 4 ? Tiles::four[vectors - 1] : rows == 2 ? Tiles::two[vectors - 1] : Tiles::one[vectors - 1];
}

// Rows of the next piece where A is not packed: the last two pieces are about as high, since low ones wait for their sums.
HWY_INLINE size_t unpacked_rows(size_t rest) {
  return rest >= 2 * tile_rows ? tile_rows : rest > tile_rows ? (rest + 1) / 2 : rest;
}

// Parts of k that are about equal, whole vectors of eight, and at most 256: a panel's part stays in L1.
HWY_INLINE size_t part_of(size_t k) {
  const size_t parts = (k + 255) / 256;
  return std::max<size_t>((k / std::max<size_t>(parts, 1) + 7) / 8 * 8, 8);
}

// Spreads the fetching of the panel part that follows over the row pieces of this one. A page has 64 lines; a piece takes `steps`
// lines from each of several pages, and some pieces together finish a group of pages.
class Prefetch {
 public:
  Prefetch() = default;  // Of nothing: not asked.
  Prefetch(const char* start, size_t bytes, size_t rows, size_t k) : at_(start), left_((bytes + 4095) / 4096), steps_(k / 8) {
    pieces_ = std::max<size_t>(64 / std::max<size_t>(steps_, 1), 1);
    const size_t blocks = (rows + tile_rows - 1) / tile_rows;
    const size_t groups = std::max<size_t>(blocks / pieces_, 1);
    group_ = (left_ + groups - 1) / groups;
  }

  // Gives the tile its lines to fetch and goes on to the next piece.
  HWY_INLINE void next(Tile& t) {
    t.prefetch = at_ + done_ * steps_ * 64;
    t.prefetch_pages = std::min(group_, left_);
    if (++done_ < pieces_) return;
    done_ = 0;
    at_ += group_ * 4096;
    left_ -= std::min(group_, left_);
  }

 private:
  const char* at_ = nullptr;  // Of the group of pages.
  size_t left_ = 0;           // Pages of this group and those behind it.
  size_t steps_ = 0;          // Of eight k in a piece.
  size_t pieces_ = 0;         // That share a group.
  size_t group_ = 0;          // Pages in a group.
  size_t done_ = 0;  // Pieces of the group.
};

// From one row of C to another below.
HWY_INLINE void move_down(Epilogue& e, size_t rows, size_t c_stride) {
  if (e.row_bias != nullptr) e.row_bias += rows;
  if (e.addend != nullptr) e.addend += rows * e.addend_stride;
  if (e.residual != nullptr) e.residual += rows * c_stride;
}

HWY_INLINE bool is_simple(const Epilogue& e) {
  return e.alpha == 1 && e.beta == 1 && e.row_bias == nullptr && e.addend == nullptr;
}

void multiply_part(const Product& p, const Block& block, size_t panel, size_t k_begin, size_t k_end) {
  const size_t column = panel * panel_columns;
  const size_t columns = std::min(panel_columns, p.n - column);
  const size_t vectors = (columns + lanes - 1) / lanes;
  const size_t width = vectors * lanes;
  const float* const b = p.b + column * p.k + k_begin * width;
  const size_t k = k_end - k_begin;
  Prefetch prefetch;  // Its divisions cost more than a short tile.
  if (p.prefetch_b)
    prefetch = {reinterpret_cast<const char*>(b + k * width), k * width * sizeof(float), block.row_end - block.row_begin, k};
  const bool finish_now = k_end == p.k && !p.epilogue.is_identity();
  const bool packed = p.a_stride == 0;
  Epilogue epilogue = finish_now ? p.epilogue.at(block.row_begin, column, p.c_stride) : Epilogue();
  float* c = p.c + block.row_begin * p.c_stride + column;
  Tile t{.k = k,
         .a = nullptr,
         .a_stride = p.a_stride,
         .a_next = 0,
         .b = b,
         .b_step = width,
         .c = c,
         .c_stride = p.c_stride,
         .columns = columns,
         .accumulate = p.accumulate || k_begin != 0,
         .epilogue = finish_now ? &epilogue : nullptr,
         .is_simple = !finish_now || is_simple(epilogue),
         .prefetch = nullptr,
         .prefetch_pages = 0};
  for (size_t row = block.row_begin; row < block.row_end;) {
    const size_t size = packed ? piece_rows(p.m - row) : unpacked_rows(block.row_end - row);
    t.a = packed ? p.a + row * p.k + k_begin * size : p.a + row * p.a_stride + k_begin;
    t.a_next = size * p.a_stride;
    t.c = c;
    if (p.prefetch_b) prefetch.next(t);
    (packed ? packed_tile(size, vectors) : unpacked_tiles[vectors - 1][size - 1])(t);
    if (finish_now) {
      activate(c, p.c_stride, size, columns, epilogue);
      move_down(epilogue, size, p.c_stride);
    }
    c += size * p.c_stride;
    row += size;
  }
}

// Parts of k outermost, so that a part of A stays in L2 for all panels of the block.
void multiply(const Product& p, const Block& block) {
  const size_t part = part_of(p.k);
  size_t k = 0;
  do {
    const size_t k_end = std::min(k + part, p.k);
    for (size_t panel = block.panel_begin; panel < block.panel_end; ++panel) multiply_part(p, block, panel, k, k_end);
    k = k_end;
  } while (k < p.k);
}

const GemmLoops& gemm_table() {
  static constexpr GemmLoops table = {tile_rows,     panel_columns,     lanes,     pack_a, pack_b, multiply,
                                      multiply_rows, multiply_unpacked, transpose, finish};
  return table;
}

}  // namespace unmoor::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace unmoor::cpu {

HWY_EXPORT(gemm_table);
const GemmLoops& gemm_loops() { return HWY_DYNAMIC_DISPATCH(gemm_table)(); }

bool Epilogue::is_identity() const {
  return alpha == 1 && row_bias == nullptr && column_bias == nullptr && addend == nullptr && residual == nullptr &&
         low == -std::numeric_limits<float>::infinity() && high == std::numeric_limits<float>::infinity() && activate == nullptr;
}

Epilogue Epilogue::at(size_t row, size_t column, size_t c_stride) const {
  Epilogue part = *this;
  if (row_bias != nullptr) part.row_bias = row_bias + row;
  if (column_bias != nullptr) part.column_bias = column_bias + column;
  if (addend != nullptr) part.addend = addend + row * addend_stride + column;
  if (residual != nullptr) part.residual = residual + row * c_stride + column;
  return part;
}

}  // namespace unmoor::cpu
#endif
