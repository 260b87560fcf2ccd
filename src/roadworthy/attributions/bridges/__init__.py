"""Attribution methods of other libraries."""
