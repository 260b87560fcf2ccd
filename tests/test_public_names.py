import roadworthy


def test_the_public_names_are_sorted_complete_and_there():
    public = roadworthy.__all__
    assert public == sorted(public, key=lambda name: (not name.isupper(), not name[0].isupper(), name))
    assert all(hasattr(roadworthy, name) for name in public)
    assert len(public) == len(set(public))
