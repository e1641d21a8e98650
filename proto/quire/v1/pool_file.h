// The pool file: the part of the contract that is not protobuf. Little-endian, written by the
// server, mapped by workers.
//
//   offset 0              PoolFileHeader (one page, read-only to workers)
//   lease_words_offset    lease_word_count 64-bit words, one per attached lease
//   blocks_offset         block_count blocks of block_bytes each
//
// A lease word holds the lease number while the lease is good; any other value means revoked: throw
// the results of the last launches away and attach again. Each process that maps the file holds a
// shared open-file-description lock (F_OFD_SETLK, F_RDLCK) on the one byte at
// kLockBase + lease number, taken through the same description it maps from.
#ifndef QUIRE_PROTO_QUIRE_V1_POOL_FILE_H_
#define QUIRE_PROTO_QUIRE_V1_POOL_FILE_H_

#include <cstdint>

namespace quire::v1 {

inline constexpr uint64_t kPoolFileMagic = 0x314C4F4F50525551;  // "QURPOOL1"
inline constexpr uint32_t kPoolFileVersion = 1;
inline constexpr uint64_t kPoolPageBytes = 4096;
// Far beyond any file size, so that locks never meet data ranges.
inline constexpr uint64_t kLockBase = uint64_t{1} << 62;

struct PoolFileHeader {
  uint64_t magic = kPoolFileMagic;
  uint32_t version = kPoolFileVersion;
  uint32_t header_bytes = sizeof(PoolFileHeader);
  uint64_t epoch = 0;
  uint64_t layout_id = 0;
  uint32_t layout_version = 0;
  uint32_t rank = 0;
  uint64_t block_bytes = 0;
  uint64_t block_count = 0;
  uint64_t blocks_offset = 0;
  uint64_t lease_words_offset = 0;
  uint64_t lease_word_count = 0;
};

static_assert(sizeof(PoolFileHeader) == 80);

}  // namespace quire::v1

#endif  // QUIRE_PROTO_QUIRE_V1_POOL_FILE_H_
