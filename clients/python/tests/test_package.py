import importlib.metadata
import unittest


class PackageTest(unittest.TestCase):
    def test_wheel_has_the_client_and_its_types(self):
        package = importlib.metadata.distribution("smartfeed-client")
        files = {str(file) for file in package.files}
        for name in ["__init__.py", "_client.py", "_generated.py", "_publisher.py", "py.typed"]:
            self.assertIn(f"smartfeed_client/{name}", files)
        self.assertTrue(any(file.endswith("licenses/LICENSE") for file in files), files)
        self.assertEqual(package.requires, ["httpx>=0.27,<1"])
        self.assertFalse(any("test" in file for file in files), files)


if __name__ == "__main__":
    unittest.main()
