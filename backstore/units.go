package backstore

// sector is the smallest unit of any disk, in bytes.
const sector = 512

// pageSize is the alignment of Op.Data, in bytes.
const pageSize = 4096
