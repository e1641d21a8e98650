#include "tests/integration/request_fields.h"

#include "absl/strings/str_cat.h"
#include "tests/integration/request_fields_rows.h"

namespace quire::testing {
namespace {

// A name that must be given, of at most 255 bytes.
Rows Name(const std::string& rpc, const std::string& field) {
  return {{rpc, field, field + ": ''", kInvalid, "limit=255", field},
          {rpc, field, field + ": " + TextOf(256), kInvalid, "limit=255", field}};
}

BadField Pool(const std::string& rpc) {
  return {rpc, "pool", "pool: 'other'", "POOL_NOT_FOUND", "pool=other"};
}

Rows Page(const std::string& rpc) {
  return {{rpc, "page_size", "page_size: 1001", kInvalid, "limit=1000", "page_size"},
          {rpc, "page_token", "page_token: '%%%'", kInvalid, "", "page_token"}};
}

// Durations that are none, and the given ones that a field refuses as well.
Rows Durations(const std::string& rpc, const std::string& field) {
  const auto row = [&](const char* value, const char* number) {
    return BadField{rpc, field, field + value, kInvalid, number, field};
  };
  return {row(" { seconds: 1 nanos: -1 }", "given=-1"),
          row(" { nanos: 1000000000 }", "limit=999999999"),
          row(" { seconds: 315576000001 }", "limit=315576000000"),
          row(" { seconds: -3 }", "given=-3000000000")};
}

Rows AttachRows() {
  const std::string rpc = "AttachWorker";
  const std::string shape = "layout { dtype: DTYPE_FP32 kv_heads: 2 head_dim: 64 layer_windows: 0 ";
  const auto layout = [&](const char* field, const std::string& change, const char* number,
                          const char* named) {
    return BadField{rpc, absl::StrCat("layout.", field), change, kInvalid, number, named};
  };
  std::string windows = "layout { ";
  for (int i = 0; i < 256; ++i) absl::StrAppend(&windows, "layer_windows: ", i + 1, " ");
  Rows rows = {
      {rpc, "incarnation", "worker: 'w' incarnation: 0", "STALE_INCARNATION", "incarnation=1"},
      Pool(rpc),
      layout("dtype", "layout { dtype: 77 }", "given=77", "layout.dtype"),
      layout("kv_heads", shape + "kv_heads: 65537 }", "limit=65536", "layout.kv_heads"),
      layout("kv_heads", shape + "kv_heads: 0 }", "given=0", "layout.kv_heads"),
      layout("head_dim", shape + "head_dim: 60 }", "given=60", "layout.head_dim"),
      layout("layer_windows", "layout { " + Repeat("layer_windows: 0 ", 1025) + "}", "limit=1024",
             "layout.layer_windows"),
      layout("layer_windows", windows + "}", "limit=255", "layout.layer_windows"),
      layout("groups", "layout { " + Repeat("groups { kind: GROUP_KIND_FULL } ", 1025) + "}",
             "limit=1024", "layout.groups"),
      layout("groups", "layout { " + Repeat("groups { kind: GROUP_KIND_FULL } ", 256) + "}",
             "limit=255", "layout.groups"),
      layout("groups.kind", "layout { groups { kind: 9 } }", "given=9", "layout.groups[0].kind"),
      layout("groups.window_tokens", "layout { groups { kind: GROUP_KIND_FULL window_tokens: 3 } }",
             "given=3", "layout.groups[0].window_tokens"),
      layout("groups.layers", "layout { groups { kind: GROUP_KIND_FULL layers: 1024 } }",
             "limit=1023", "layout.groups[0].layers"),
      {rpc, "layout.block_tokens", "layout { block_tokens: 8 }", "LAYOUT_MISMATCH",
       "worker_layout=blocks of 8 tokens"},
      {rpc, "ranks", "ranks: 2", "LAYOUT_MISMATCH", "pool_layout=1 ranks"},
      {rpc, "lease_duration", "lease_duration {}", kInvalid, "given=0", "lease_duration"}};
  Append(rows, Name(rpc, "worker"));
  Append(rows, Name(rpc, "model_fingerprint"));
  Append(rows, Durations(rpc, "lease_duration"));
  return rows;
}

Rows LeaseRows() {
  Rows rows;
  for (const std::string rpc : {"RenewLease", "DetachWorker", "GetBlockTable", "Step"}) {
    for (const char* lease : {"", "0-nobody", "7-x", "junk"}) {
      rows.push_back(
          {rpc, "lease_id", absl::StrCat("lease_id: '", lease, "'"), "LEASE_EXPIRED", ""});
    }
    rows.push_back({rpc, "epoch", "epoch: 1", "EPOCH_MISMATCH", "given=1"});
    rows.push_back({rpc, "epoch", "epoch: 0", kInvalid, "", "epoch"});
  }
  const auto counter = [&](const char* rpc, const char* path, const char* change,
                           const char* number, const char* named) {
    rows.push_back({rpc, path, change, kInvalid, number, named, /*pipelined=*/true});
  };
  counter("RenewLease", "applied_step", "applied_step: 9", "last_step=0", "applied_step");
  counter("RenewLease", "completed_step", "completed_step: 1", "applied_step=0", "applied_step");
  counter("DetachWorker", "completed_step", "completed_step: 9", "limit=0", "completed_step");
  counter("Step", "applied_step", "applied_step: 1", "step=1", "applied_step");
  counter("Step", "completed_step", "completed_step: 1", "applied_step=0", "applied_step");
  rows.push_back(
      {"GetBlockTable", "sequences", "sequences: 99", "SEQUENCE_NOT_FOUND", "sequence=99"});
  rows.push_back({"GetBlockTable", "sequences", Repeat("sequences: 1 ", 1025), kInvalid,
                  "limit=1024", "sequences"});
  return rows;
}

Rows PrefixRows(const Place& place) {
  Rows rows = {{place.rpc, place.path + "pool", place.open + "pool: 'other'" + place.close,
                "POOL_NOT_FOUND", "pool=other"}};
  Append(rows, NamespaceRows(place));
  Append(rows, DigestRows(place));
  return rows;
}

Rows PeekRows() {
  const Place place{"PeekPrefix", "", "", "", "", ""};
  Rows rows = PrefixRows(place);
  rows.push_back(place.Row("tokens", Repeat("tokens: 1 ", 41), "limit=40", "tokens"));
  return rows;
}

Rows AdminRows() {
  Rows rows = {
      {"GetSequence", "worker", "worker: 'x'", "WORKER_NOT_FOUND", "worker=x"},
      {"GetSequence", "handle", "handle: 99", "SEQUENCE_NOT_FOUND", "sequence=99"},
      {"EndWorker", "worker", "worker: 'x'", "WORKER_NOT_FOUND", "worker=x"},
      {"UnpinPrefix", "pin_id", "pin_id: 'x'", "PIN_NOT_FOUND", "pin_id=x"},
      {"PinPrefix", "duration", "duration { seconds: 86401 }", kInvalid, "limit=86400000000000",
       "duration"},
      {"PinPrefix", "duration", "duration { seconds: 0 }", kInvalid, "least=1", "duration"},
      {"PinPrefix", "prefix.tokens", "prefix { " + Repeat("tokens: 1 ", 41) + "}", kInvalid,
       "limit=40", "prefix.tokens"}};
  for (const std::string rpc : {"GetPool", "ListWorkers", "ListSequences", "GetSequence",
                                "UnpinPrefix", "ListPins", "FlushPool", "AuditPool", "EndWorker"}) {
    rows.push_back(Pool(rpc));
  }
  for (const std::string rpc : {"ListPools", "ListWorkers", "ListSequences", "ListPins"}) {
    Append(rows, Page(rpc));
  }
  for (const std::string rpc : {"PinPrefix", "EvictPrefix"}) {
    Append(rows, PrefixRows({rpc, "prefix.", "prefix { ", " }", "prefix.", "prefix."}));
  }
  Append(rows, Name("GetSequence", "worker"));
  Append(rows, Name("EndWorker", "worker"));
  Append(rows, Name("UnpinPrefix", "pin_id"));
  Append(rows, Name("PinPrefix", "owner"));
  Append(rows, Durations("PinPrefix", "duration"));
  Append(rows, Durations("Drain", "deadline"));
  return rows;
}

}  // namespace

std::vector<BadField> BadFields() {
  Rows rows = AttachRows();
  for (const auto& more : {LeaseRows(), PeekRows(), AdminRows(), StepRows()}) Append(rows, more);
  return rows;
}

std::set<std::string> FieldsOfAnyValue() {
  return {"AttachWorker.map_memory", "AttachWorker.lock_step",
          // Output only.
          "AttachWorker.layout.groups.padding_bytes",
          // Another one has nothing cached.
          "PeekPrefix.model_fingerprint", "PinPrefix.prefix.model_fingerprint",
          "EvictPrefix.prefix.model_fingerprint", "EvictPrefix.prefix.tokens",
          "ListSequences.worker", "AuditPool.content", "Step.all_or_nothing",
          // At most the rest, at most the hit, up to max_sequence_tokens.
          "Step.operations.begin.allocate_tokens", "Step.operations.begin.recompute_tail",
          "Step.operations.extend.slots", "Step.operations.begin.skip_cache_read",
          "Step.operations.finish.drop"};
}

}  // namespace quire::testing
