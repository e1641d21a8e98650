// Bad arguments: every backend refuses the same ones, with the same code, naming the same argument,
// and writes nothing.
#include <gtest/gtest.h>

#include <climits>
#include <cmath>
#include <functional>
#include <limits>

#include "tests/kernels/testing/backends.h"
#include "tests/kernels/testing/small_call.h"

namespace quire::kernels::testing {
namespace {

constexpr StatusCode kBad = StatusCode::kInvalidArgument;
constexpr StatusCode kRange = StatusCode::kOutOfRange;
constexpr StatusCode kRoom = StatusCode::kNoSpace;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr int64_t kHuge = int64_t{1} << 61;

struct BadCall {
  const char* what;
  StatusCode code;
  const char* argument;
  std::function<void(SmallCall&)> change;
};

void Make(SmallCall& call, Backend& backend) {
  const Result<AttentionPlan> plan =
      backend.Plan(call.pool, call.table, call.attention, call.options);
  ASSERT_TRUE(plan.ok()) << plan.status().argument() << ": " << plan.status().message();
  ASSERT_GT(plan->workspace_bytes, 0);
  call.plan = *plan;
}

// The tested backend and the reference, which must agree.
void ForBoth(const std::function<void(Backend&)>& body) {
  for (const auto& backend : {MakeTested(), MakeReference()}) {
    SCOPED_TRACE(std::string(backend->name()));
    body(*backend);
  }
}

void ExpectRefused(const std::vector<CallKind>& kinds, const std::vector<BadCall>& calls) {
  ForBoth([&](Backend& backend) {
    for (const CallKind kind : kinds) {
      for (const BadCall& bad : calls) {
        SCOPED_TRACE(std::string(Name(kind)) + ": " + bad.what);
        SmallCall call;
        Make(call, backend);
        bad.change(call);
        const std::vector<std::byte> before = call.Memory();
        const Status status = call.Run(kind, backend);
        EXPECT_EQ(status.code(), bad.code) << status.argument() << ": " << status.message();
        EXPECT_EQ(status.argument(), bad.argument) << status.message();
        EXPECT_EQ(before, call.Memory()) << "something was written";
      }
    }
  });
}

const std::vector<CallKind> kPoolKinds = {
    CallKind::kWrite, CallKind::kPlan,   CallKind::kCascade, CallKind::kDecode,  CallKind::kAppend,
    CallKind::kCopy,  CallKind::kGather, CallKind::kScatter, CallKind::kChecksum};
const std::vector<CallKind> kTableKinds = {CallKind::kPlan, CallKind::kCascade, CallKind::kDecode,
                                           CallKind::kAppend};
const std::vector<CallKind> kAttention = {CallKind::kDecode, CallKind::kAppend};

void ChangeLayout(PagedKvLayout& layout, const std::function<void(PagedKvLayout&)>& change) {
  change(layout);
  layout.id = LayoutId(layout);
}

TEST(ArgumentsTest, TheUnchangedCallsAreGood) {
  ForBoth([](Backend& backend) {
    for (const CallKind kind : kEveryKind) {
      SmallCall call;
      Make(call, backend);
      const Status status = call.Run(kind, backend);
      EXPECT_TRUE(status.ok()) << Name(kind) << ": " << status.argument() << ": "
                               << status.message();
    }
  });
}

TEST(ArgumentsTest, Pools) {
  ExpectRefused(
      kPoolKinds,
      {{"no base", kBad, "pool.base", [](SmallCall& c) { c.pool.base = nullptr; }},
       {"odd base", kBad, "pool.base", [](SmallCall& c) { c.pool.base += 8; }},
       {"no such memory", kBad, "pool.memory",
        [](SmallCall& c) { c.pool.memory = static_cast<MemoryKind>(7); }},
       {"negative size", kRange, "pool_bytes", [](SmallCall& c) { c.pool.bytes = -1; }},
       {"too many blocks", kRange, "pool_bytes", [](SmallCall& c) { c.pool.num_blocks = 9; }},
       {"no blocks", kBad, "num_blocks", [](SmallCall& c) { c.pool.num_blocks = 0; }},
       {"stale id", kBad, "layout", [](SmallCall& c) { c.pool.layout.block_bytes += 4096; }},
       {"head size", kBad, "head_dim",
        [](SmallCall& c) {
          ChangeLayout(c.pool.layout, [](PagedKvLayout& l) { l.head_dim = 72; });
        }},
       {"type", kBad, "dtype",
        [](SmallCall& c) {
          ChangeLayout(c.pool.layout, [](PagedKvLayout& l) { l.dtype = static_cast<DType>(9); });
        }},
       {"block of 512", kBad, "block_tokens",
        [](SmallCall& c) {
          ChangeLayout(c.pool.layout, [](PagedKvLayout& l) { l.log2_block_tokens = 9; });
        }},
       {"unaligned rows", kBad, "layout", [](SmallCall& c) {
          ChangeLayout(c.pool.layout, [](PagedKvLayout& l) {
            l.preset = LayoutPreset::kCustom;
            l.token_stride += 1;
          });
        }}});
}

TEST(ArgumentsTest, TablesAndMasks) {
  ExpectRefused(
      kTableKinds,
      {{"negative rows", kRange, "table.rows", [](SmallCall& c) { c.table.rows = -1; }},
       {"rows past 32 bits", kRange, "table.rows", [](SmallCall& c) { c.table.rows = kHuge; }},
       {"negative columns", kRange, "table.columns", [](SmallCall& c) { c.table.columns = -1; }},
       {"columns past 32 bits", kRange, "table.columns",
        [](SmallCall& c) { c.table.columns = c.table.row_stride = kHuge; }},
       {"rows overlap", kBad, "table.row_stride", [](SmallCall& c) { c.table.row_stride = 2; }},
       {"rows far apart", kBad, "table.row_stride",
        [](SmallCall& c) { c.table.row_stride = kHuge; }},
       {"no ids", kBad, "table.ids", [](SmallCall& c) { c.table.ids = nullptr; }},
       {"no lens", kBad, "table.lens", [](SmallCall& c) { c.table.lens = nullptr; }},
       {"longer than its row", kRange, "table.lens", [](SmallCall& c) { c.lens[1] = 49; }},
       {"longest", kRange, "table.lens", [](SmallCall& c) { c.lens[1] = INT_MAX; }},
       {"negative length", kRange, "table.lens", [](SmallCall& c) { c.lens[0] = -1; }},
       {"no block in use", kRange, "table.ids", [](SmallCall& c) { c.table_ids[2] = kNoBlock; }},
       {"id past the pool", kRange, "table.ids", [](SmallCall& c) { c.table_ids[4] = 8; }},
       {"largest id", kRange, "table.ids", [](SmallCall& c) { c.table_ids[4] = INT_MAX; }},
       {"least id", kRange, "table.ids", [](SmallCall& c) { c.table_ids[4] = INT_MIN; }},
       {"no heads", kBad, "params.q_heads", [](SmallCall& c) { c.attention.q_heads = 0; }},
       {"uneven heads", kBad, "params.q_heads", [](SmallCall& c) { c.attention.q_heads = 3; }},
       {"negative heads", kBad, "params.q_heads", [](SmallCall& c) { c.attention.q_heads = -4; }},
       {"large group", kBad, "params.q_heads", [](SmallCall& c) { c.attention.q_heads = 66; }},
       {"window", kBad, "params.mask.window_left",
        [](SmallCall& c) { c.attention.mask.window_left = -2; }},
       {"least window", kBad, "params.mask.window_left",
        [](SmallCall& c) { c.attention.mask.window_left = INT_MIN; }},
       {"keep_first", kBad, "params.mask.keep_first",
        [](SmallCall& c) { c.attention.mask.keep_first = -1; }},
       {"negative q_rows", kBad, "params.q_rows", [](SmallCall& c) { c.attention.q_rows = -3; }},
       {"other q_rows", kBad, "params.cu_q_lens", [](SmallCall& c) { c.attention.q_rows = 4; }},
       {"queries from 1", kBad, "params.cu_q_lens", [](SmallCall& c) { c.cu[0] = 1; }},
       {"falling queries", kBad, "params.cu_q_lens", [](SmallCall& c) { c.cu[1] = 4; }},
       {"one query each", kBad, "params.q_rows",
        [](SmallCall& c) { c.attention.cu_q_lens = nullptr; }}});
}

TEST(ArgumentsTest, PlanOptions) {
  ExpectRefused(
      {CallKind::kPlan, CallKind::kCascade},
      {{"parts", kBad, "options.parts", [](SmallCall& c) { c.options.parts = -1; }},
       {"many parts", kBad, "options.parts", [](SmallCall& c) { c.options.parts = 1 << 21; }},
       {"rows", kBad, "options.q_tile_rows", [](SmallCall& c) { c.options.q_tile_rows = 0; }},
       {"split", kBad, "options.fixed_split", [](SmallCall& c) { c.options.fixed_split = -1; }},
       {"overhead", kBad, "options.overhead_tiles",
        [](SmallCall& c) { c.options.overhead_tiles = -1; }},
       {"least piece", kBad, "options.min_piece_per_row",
        [](SmallCall& c) { c.options.min_piece_per_row = -1; }}});
  ExpectRefused(
      {CallKind::kCascade},
      {{"no prefix", kBad, "prefix_tokens", [](SmallCall& c) { c.prefix_tokens = 0; }},
       {"half a block", kBad, "prefix_tokens", [](SmallCall& c) { c.prefix_tokens = 8; }},
       {"past the length", kBad, "prefix_tokens", [](SmallCall& c) { c.prefix_tokens = kHuge; }},
       {"other blocks", kBad, "table.ids", [](SmallCall& c) { c.table_ids[3] = 1; }},
       {"queries in it", kBad, "prefix_tokens", [](SmallCall& c) { c.prefix_tokens = 32; }}});
}

TEST(ArgumentsTest, AttentionTensors) {
  ExpectRefused(
      kAttention,
      {{"no q", kBad, "params.q", [](SmallCall& c) { c.attention.q = nullptr; }},
       {"odd q", kBad, "params.q",
        [](SmallCall& c) { c.attention.q = reinterpret_cast<const std::byte*>(c.q.data()) + 2; }},
       {"q type", kBad, "params.q_dtype", [](SmallCall& c) { c.attention.q_dtype = DType::kI8; }},
       {"no type", kBad, "params.q_dtype",
        [](SmallCall& c) { c.attention.q_dtype = static_cast<DType>(0); }},
       {"q heads overlap", kBad, "params.q_head_stride",
        [](SmallCall& c) { c.attention.q_head_stride = 63; }},
       {"q backwards", kBad, "params.q_row_stride",
        [](SmallCall& c) { c.attention.q_row_stride = -1; }},
       {"q too far", kBad, "params.q_row_stride",
        [](SmallCall& c) { c.attention.q_row_stride = kHuge; }},
       {"q heads too far", kBad, "params.q_head_stride",
        [](SmallCall& c) { c.attention.q_head_stride = kHuge; }},
       {"no out", kBad, "params.out", [](SmallCall& c) { c.attention.out = nullptr; }},
       {"odd out", kBad, "params.out",
        [](SmallCall& c) { c.attention.out = reinterpret_cast<std::byte*>(c.out.data()) + 1; }},
       {"out type", kBad, "params.out_dtype",
        [](SmallCall& c) { c.attention.out_dtype = DType::kE4M3; }},
       {"out rows overlap", kBad, "params.out_row_stride",
        [](SmallCall& c) { c.attention.out_row_stride = 4 * 64 - 1; }},
       {"out heads overlap", kBad, "params.out_head_stride",
        [](SmallCall& c) { c.attention.out_head_stride = 32; }},
       {"out backwards", kBad, "params.out_head_stride",
        [](SmallCall& c) { c.attention.out_head_stride = -64; }},
       {"out head major, overlapping", kBad, "params.out_head_stride",
        [](SmallCall& c) {
          c.attention.out_row_stride = 64;
          c.attention.out_head_stride = 2 * 64 + 1;
        }},
       {"odd lse", kBad, "params.lse",
        [](SmallCall& c) {
          c.attention.lse =
              reinterpret_cast<float*>(reinterpret_cast<std::byte*>(c.lse.data()) + 2);
        }},
       {"lse rows overlap", kBad, "params.lse_row_stride",
        [](SmallCall& c) { c.attention.lse_row_stride = 0; }},
       {"lse heads overlap", kBad, "params.lse_head_stride",
        [](SmallCall& c) { c.attention.lse_head_stride = 0; }},
       {"lse backwards", kBad, "params.lse_row_stride",
        [](SmallCall& c) { c.attention.lse_row_stride = -4; }}});
}

TEST(ArgumentsTest, AttentionScoresPlansAndWorkspaces) {
  ExpectRefused(
      kAttention,
      {{"negative layer", kRange, "params.layer", [](SmallCall& c) { c.attention.layer = -1; }},
       {"no such layer", kRange, "params.layer", [](SmallCall& c) { c.attention.layer = 2; }},
       {"scale NaN", kBad, "params.scale", [](SmallCall& c) { c.attention.scale = kNan; }},
       {"scale inf", kBad, "params.scale", [](SmallCall& c) { c.attention.scale = -kInf; }},
       {"softcap", kBad, "params.softcap", [](SmallCall& c) { c.attention.softcap = -1; }},
       {"softcap NaN", kBad, "params.softcap", [](SmallCall& c) { c.attention.softcap = kNan; }},
       {"softcap inf", kBad, "params.softcap", [](SmallCall& c) { c.attention.softcap = kInf; }},
       {"slope NaN", kBad, "params.alibi_slopes", [](SmallCall& c) { c.slopes[3] = kNan; }},
       {"slope inf", kBad, "params.alibi_slopes", [](SmallCall& c) { c.slopes[0] = -kInf; }},
       {"sink NaN", kBad, "params.sinks", [](SmallCall& c) { c.sinks[3] = kNan; }},
       {"sink inf", kBad, "params.sinks", [](SmallCall& c) { c.sinks[1] = kInf; }},
       {"no k_scale", kBad, "params.k_scale", [](SmallCall& c) { c.attention.k_scale = nullptr; }},
       {"k_scale NaN", kBad, "params.k_scale", [](SmallCall& c) { c.k_scale[1] = kNan; }},
       {"k_scale 0", kBad, "params.k_scale", [](SmallCall& c) { c.k_scale[0] = 0; }},
       {"no v_scale", kBad, "params.v_scale", [](SmallCall& c) { c.attention.v_scale = nullptr; }},
       {"v_scale negative", kBad, "params.v_scale", [](SmallCall& c) { c.v_scale[1] = -1; }},
       {"v_scale inf", kBad, "params.v_scale", [](SmallCall& c) { c.v_scale[1] = kInf; }},
       {"other lengths", kBad, "plan", [](SmallCall& c) { c.lens[0] = 39; }},
       {"other mask", kBad, "plan", [](SmallCall& c) { c.attention.mask.window_left = 0; }},
       {"no plan", kBad, "plan", [](SmallCall& c) { c.plan = {}; }},
       {"no workspace", kRoom, "workspace", [](SmallCall& c) { c.space = {}; }},
       {"odd workspace", kRoom, "workspace", [](SmallCall& c) { c.space = c.space.subspan(1); }},
       {"small workspace", kRoom, "workspace", [](SmallCall& c) {
          c.space = c.space.first(static_cast<size_t>(c.plan.workspace_bytes) - 4);
        }}});
}

TEST(ArgumentsTest, Writes) {
  ExpectRefused(
      {CallKind::kWrite},
      {{"no k", kBad, "rows.k", [](SmallCall& c) { c.rows.k = nullptr; }},
       {"odd v", kBad, "rows.v",
        [](SmallCall& c) { c.rows.v = reinterpret_cast<const std::byte*>(c.q.data()) + 1; }},
       {"type", kBad, "rows.dtype", [](SmallCall& c) { c.rows.dtype = DType::kE4M3; }},
       {"layer", kRange, "rows.layer", [](SmallCall& c) { c.rows.layer = 2; }},
       {"negative layer", kRange, "rows.layer", [](SmallCall& c) { c.rows.layer = -1; }},
       {"k backwards", kBad, "rows.k_token_stride",
        [](SmallCall& c) { c.rows.k_token_stride = -1; }},
       {"k heads backwards", kBad, "rows.k_head_stride",
        [](SmallCall& c) { c.rows.k_head_stride = -1; }},
       {"v backwards", kBad, "rows.v_token_stride",
        [](SmallCall& c) { c.rows.v_token_stride = -1; }},
       {"v heads too far", kBad, "rows.v_head_stride",
        [](SmallCall& c) { c.rows.v_head_stride = kHuge; }},
       {"no k_scale", kBad, "rows.k_scale", [](SmallCall& c) { c.rows.k_scale = nullptr; }},
       {"k_scale NaN", kBad, "rows.k_scale", [](SmallCall& c) { c.k_scale[1] = kNan; }},
       {"v_scale inf", kBad, "rows.v_scale", [](SmallCall& c) { c.v_scale[0] = kInf; }},
       {"v_scale 0", kBad, "rows.v_scale", [](SmallCall& c) { c.v_scale[0] = 0; }},
       {"no slots", kBad, "targets.slots", [](SmallCall& c) { c.targets.slots = nullptr; }},
       {"negative tokens", kRange, "targets.tokens", [](SmallCall& c) { c.targets.tokens = -1; }},
       {"tokens past 32 bits", kRange, "targets.tokens",
        [](SmallCall& c) { c.targets.tokens = kHuge; }},
       {"past the pool", kRange, "targets.slots", [](SmallCall& c) { c.slots[0] = 8 * 16; }},
       {"far past it", kRange, "targets.slots", [](SmallCall& c) { c.slots[2] = INT64_MAX; }},
       {"twice", kBad, "targets.slots", [](SmallCall& c) { c.slots[2] = c.slots[0]; }}});
}

TEST(ArgumentsTest, Merges) {
  ExpectRefused(
      {CallKind::kMerge},
      {{"states", kRange, "params.states", [](SmallCall& c) { c.merge.states = -1; }},
       {"many states", kRange, "params.states", [](SmallCall& c) { c.merge.states = kHuge; }},
       {"all together", kRange, "params.states",
        [](SmallCall& c) { c.merge.states = c.merge.rows = c.merge.heads = INT_MAX; }},
       {"rows", kRange, "params.rows", [](SmallCall& c) { c.merge.rows = -1; }},
       {"heads", kRange, "params.heads", [](SmallCall& c) { c.merge.heads = 0; }},
       {"head_dim", kRange, "params.head_dim", [](SmallCall& c) { c.merge.head_dim = 0; }},
       {"no out", kBad, "params.out", [](SmallCall& c) { c.merge.out = nullptr; }},
       {"odd out", kBad, "params.out",
        [](SmallCall& c) { c.merge.out = reinterpret_cast<std::byte*>(c.out.data()) + 2; }},
       {"type", kBad, "params.out_dtype", [](SmallCall& c) { c.merge.out_dtype = DType::kI8; }},
       {"no states", kBad, "params.partial_out",
        [](SmallCall& c) { c.merge.partial_out = nullptr; }},
       {"no lses", kBad, "params.partial_lse", [](SmallCall& c) { c.merge.partial_lse = nullptr; }},
       {"sink NaN", kBad, "params.sinks", [](SmallCall& c) { c.sinks[2] = kNan; }},
       {"sink inf", kBad, "params.sinks", [](SmallCall& c) { c.sinks[2] = kInf; }}});
}

TEST(ArgumentsTest, CopiesAndChecksums) {
  ExpectRefused(
      {CallKind::kCopy},
      {{"no source", kRange, "orders.source", [](SmallCall& c) { c.copies[1].source = kNoBlock; }},
       {"source", kRange, "orders.source", [](SmallCall& c) { c.copies[1].source = 8; }},
       {"destination", kRange, "orders.destination",
        [](SmallCall& c) { c.copies[1].destination = 8; }},
       {"tokens", kRange, "orders.tokens", [](SmallCall& c) { c.copies[1].tokens = 17; }},
       {"negative tokens", kRange, "orders.tokens",
        [](SmallCall& c) { c.copies[1].tokens = -1; }}});
  ExpectRefused(
      {CallKind::kChecksum},
      {{"block", kRange, "orders.block", [](SmallCall& c) { c.checks[1].block = 8; }},
       {"no block", kRange, "orders.block", [](SmallCall& c) { c.checks[1].block = kNoBlock; }},
       {"begin", kRange, "orders.slot_begin", [](SmallCall& c) { c.checks[1].slot_begin = -1; }},
       {"end", kRange, "orders.slot_end", [](SmallCall& c) { c.checks[1].slot_end = 17; }},
       {"backwards", kRange, "orders.slot_end", [](SmallCall& c) { c.checks[1].slot_end = 1; }},
       {"no room", kRoom, "sums", [](SmallCall& c) { c.sums.resize(1); }}});
}

TEST(ArgumentsTest, GatherScatterAndTransfer) {
  const std::vector<BadCall> ids = {
      {"past the pool", kRange, "ids", [](SmallCall& c) { c.ids[1] = 8; }},
      {"no block", kRange, "ids", [](SmallCall& c) { c.ids[1] = kNoBlock; }}};
  ExpectRefused({CallKind::kGather, CallKind::kScatter}, ids);
  const auto shorter = [](SmallCall& c) { c.dense_bytes = c.dense_bytes.first(64); };
  const auto fewer = [](SmallCall& c) { c.ids.pop_back(); };
  ExpectRefused({CallKind::kGather},
                {{"short", kRoom, "destination", shorter}, {"long", kRoom, "destination", fewer}});
  ExpectRefused({CallKind::kScatter}, {{"short", kRoom, "source", shorter},
                                       {"long", kRoom, "source", fewer},
                                       {"twice", kBad, "ids", [](SmallCall& c) { c.ids[1] = 3; }}});
  ExpectRefused(
      {CallKind::kTransfer},
      {{"source", kRange, "pairs.source", [](SmallCall& c) { c.pairs[1].source = 8; }},
       {"destination", kRange, "pairs.destination",
        [](SmallCall& c) { c.pairs[1].destination = kNoBlock; }},
       {"twice", kBad, "pairs.destination", [](SmallCall& c) { c.pairs[1].destination = 1; }},
       {"source pool", kBad, "source.base", [](SmallCall& c) { c.pool.base += 8; }},
       {"source layout", kBad, "source.layout", [](SmallCall& c) { c.pool.layout.id ^= 1; }},
       {"destination pool", kRange, "destination.bytes",
        [](SmallCall& c) { c.destination.num_blocks = 9; }},
       {"destination memory", kBad, "destination.memory",
        [](SmallCall& c) { c.destination.memory = static_cast<MemoryKind>(3); }},
       {"other shape", kBad, "destination.layout",
        [](SmallCall& c) {
          c.destination.layout = Layout({.dtype = DType::kI8,
                                         .layers = 2,
                                         .kv_heads = 2,
                                         .head_dim = 64,
                                         .scale_kind = ScaleKind::kPerHead});
        }},
       {"read and written", kBad, "pairs.source",
        [](SmallCall& c) {
          c.destination = c.pool;
          c.pairs = {{0, 1}, {1, 2}};
        }},
       {"onto itself", kBad, "pairs.source",
        [](SmallCall& c) {
          c.destination = c.pool;
          c.pairs = {{4, 4}};
        }},
       // Block 0 of the one is block 1 of the other.
       {"pools that overlap", kBad, "destination.base", [](SmallCall& c) {
          c.destination = c.pool;
          c.destination.base += c.pool.layout.block_bytes;
          c.destination.bytes -= c.pool.layout.block_bytes;
          c.destination.num_blocks -= 1;
        }}});
}

TEST(ArgumentsTest, DevicePoolsAreForDevices) {
  ForBoth([](Backend& backend) {
    for (const CallKind kind : kPoolKinds) {
      SmallCall call;
      Make(call, backend);
      call.pool.memory = MemoryKind::kDevice;
      const std::vector<std::byte> before = call.Memory();
      const Status status = call.Run(kind, backend);
      const bool plans = kind == CallKind::kPlan || kind == CallKind::kCascade;
      if (backend.name() != "cuda") {
        EXPECT_EQ(status.code(), StatusCode::kUnsupported) << Name(kind);
      } else if (!plans) {  // it is host memory, whatever the view says
        EXPECT_EQ(status.code(), kBad) << Name(kind);
      } else {
        EXPECT_TRUE(status.ok()) << Name(kind);
        continue;
      }
      EXPECT_EQ(status.argument(), "pool.memory") << Name(kind);
      EXPECT_EQ(before, call.Memory()) << Name(kind);
    }
  });
}

TEST(ArgumentsTest, NothingToDoIsDone) {
  ForBoth([](Backend& backend) {
    SmallCall call;
    call.targets = {};
    call.rows.k = call.rows.v = nullptr;
    call.table.rows = 0;
    call.table.ids = nullptr;
    call.table.lens = nullptr;
    call.attention.q_rows = 0;
    call.attention.cu_q_lens = nullptr;
    call.attention.q = nullptr;
    call.attention.out = nullptr;
    call.attention.lse = nullptr;
    const Result<AttentionPlan> plan =
        backend.Plan(call.pool, call.table, call.attention, call.options);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    call.plan = *plan;
    call.space = {};
    call.merge.rows = 0;
    call.merge.out = nullptr;
    call.copies.clear();
    call.ids.clear();
    call.dense_bytes = {};
    call.pairs.clear();
    call.checks.clear();
    call.sums.clear();
    call.report = {};
    const std::vector<std::byte> before = call.Memory();
    for (const CallKind kind : kEveryKind) {
      const Status status = call.Run(kind, backend);
      EXPECT_TRUE(status.ok()) << Name(kind) << ": " << status.argument() << ": "
                               << status.message();
    }
    EXPECT_EQ(before, call.Memory());
  });
}

// What looks odd but is right: a window of one key, a sink that takes nothing, sequences without
// keys or queries, one row whose strides say nothing.
TEST(ArgumentsTest, OddButGood) {
  ForBoth([](Backend& backend) {
    SmallCall call;
    call.attention.mask.window_left = 0;
    call.sinks[0] = -kInf;
    call.lens = {0, 33};
    call.cu = {0, 1, 1};
    call.attention.q_rows = 1;
    call.attention.out_row_stride = 0;
    call.attention.lse_row_stride = 0;
    const Result<AttentionPlan> plan =
        backend.Plan(call.pool, call.table, call.attention, call.options);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    call.plan = *plan;
    const Status status = call.Run(CallKind::kDecode, backend);
    ASSERT_TRUE(status.ok()) << status.argument() << ": " << status.message();
    EXPECT_EQ(call.out[0], 0.0f);
    EXPECT_EQ(call.lse[0], -kInf);
    EXPECT_EQ(call.lse[1], call.sinks[1]);
  });
}

}  // namespace
}  // namespace quire::kernels::testing
