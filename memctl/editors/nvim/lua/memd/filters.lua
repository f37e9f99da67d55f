-- The filters of a query, and what completes behind each; written by tools/write_filter_keys.py.

return {
  { key = 'path', completes = 'paths' },
  { key = 'tag' },
  { key = 'since' },
  { key = 'until' },
  { key = 'after' },
  { key = 'before' },
}
